"""What a reply is worth: scores of one sample, and their summary over a run."""

from __future__ import annotations

from eval.metrics.sample import failure_scores, score
from eval.metrics.summary import sample_scores, summarise, values_of

__all__ = ["failure_scores", "sample_scores", "score", "summarise", "values_of"]
