"""Comparison of two versions of a contract: pure text in, values out.

Words are aligned first, in order and without regard to line breaks, so that nothing is compared by
its number alone and nothing is left out; the outlines of both versions then say which clause each
difference belongs to. Figures, dates and references are read by a function that the caller gives.
"""

from retrieval.compare.comparison import compare
from retrieval.compare.types import Comparison, Fact, FactReader, Version

__all__ = ["Comparison", "Fact", "FactReader", "Version", "compare"]
