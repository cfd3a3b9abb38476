"""The engine's steps as Prometheus histograms, read whenever metrics are asked for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from backend.step_times import StepHistogram, StepTimes


class StepCollector(Collector):
    """Nothing for an engine that takes its steps elsewhere."""

    def __init__(self, times: Callable[[], StepTimes | None]) -> None:
        self._times = times

    def collect(self) -> Iterator[Metric]:
        """Called by the registry, once at registering and then at every scrape."""
        now = self._times()
        if now is None:
            return
        steps = HistogramMetricFamily(
            "fineprint_engine_step_seconds",
            "Measured steps of the engine. gather: a request's context is opened; read: blocks of "
            "a document; prefill: a piece of a prompt; decode: one step of all running answers.",
            labels=("kind",),
        )
        for kind, histogram in now.steps.items():
            steps.add_metric((kind,), _buckets(histogram), histogram.total)
        yield steps
        between = HistogramMetricFamily(
            "fineprint_engine_inter_token_seconds",
            "Between two decoding steps of one request, other work in between included.",
        )
        between.add_metric((), _buckets(now.between_tokens), now.between_tokens.total)
        yield between


def _buckets(histogram: StepHistogram) -> list[tuple[str, float]]:
    bounds = [*map(floatToGoString, histogram.bounds), "+Inf"]
    return list(zip(bounds, map(float, itertools.accumulate(histogram.counts)), strict=True))
