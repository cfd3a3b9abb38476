"""Bounds of the histograms of `app.api.metrics`, in seconds or shares."""

from __future__ import annotations

STEP_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
# On a GPU a question on a document that was read before has its first token in milliseconds.
SECONDS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
READ_SECONDS = (*SECONDS, 600, 1800, 3600)
SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1)
