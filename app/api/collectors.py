"""What others count, as Prometheus families, read whenever metrics are asked for: the engine's
counters and the GPUs' temperatures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from app.hardware import HeatWatch
from backend.types import EngineCounters
from kvstore.tally import Eviction, Miss
from kvstore.types import DiskCounters, MemoryCounters


class EngineCollector(Collector):
    """The engine's counters as Prometheus families."""

    def __init__(self, counters: Callable[[], EngineCounters]) -> None:
        self._counters = counters

    def collect(self) -> Iterator[Metric]:
        """Called by the registry, once at registering and then at every scrape."""
        now = self._counters()
        lookups = CounterMetricFamily(
            "fineprint_kv_block_lookups",
            "Look-ups of KV blocks before they are read.",
            labels=("result",),
        )
        lookups.add_metric(("hit",), now.hits)
        lookups.add_metric(("miss",), now.misses)
        yield lookups
        yield CounterMetricFamily(
            "fineprint_kv_blocks_evicted", "KV blocks that made room for others.", now.evicted
        )
        yield _by_label(
            "fineprint_kv_blocks_found",
            "KV blocks found when they were asked for, by where: in the pool, in host memory as "
            "they were or aged (in a smaller format), on the disk.",
            "tier",
            _found(now),
        )
        yield _by_label(
            "fineprint_kv_blocks_lost",
            "KV blocks that were asked for and had to be read from their text: new ones, ones that "
            "had made room and are in no tier, ones that a tier had and that were not fit for use.",
            "reason",
            {reason: now.lost.get(reason, 0) for reason in get_args(Miss)},
        )
        yield _by_label(
            "fineprint_kv_blocks_dropped",
            "KV blocks that left the pool: for others' room, for others' room although pinned, "
            "with their documents.",
            "reason",
            {reason: now.dropped.get(reason, 0) for reason in get_args(Eviction)},
        )
        yield CounterMetricFamily(
            "fineprint_engine_read_tokens",
            "Document tokens that went through the model.",
            now.read_tokens,
        )
        yield GaugeMetricFamily("fineprint_kv_pages", "KV pages of the pool.", now.pages_total)
        yield GaugeMetricFamily(
            "fineprint_kv_pages_used", "KV pages that hold something.", now.pages_used
        )
        if now.memory is not None:
            yield from _memory(now.memory)
        if now.disk is not None:
            yield from _disk(now.disk)


class HeatCollector(Collector):
    """The GPUs' temperatures as Prometheus families; nothing where none are watched."""

    def __init__(self, heat: HeatWatch) -> None:
        self._heat = heat

    def collect(self) -> Iterator[Metric]:
        """Called by the registry, once at registering and then at every scrape."""
        guard = self._heat.guard
        if guard is None:
            return
        state = self._heat.state
        degrees = GaugeMetricFamily(
            "fineprint_gpu_temperature_celsius", "By the last look.", labels=("gpu", "sensor")
        )
        for one in state.temperatures:
            for sensor, value in (("core", one.core_c), ("memory", one.memory_c)):
                if value is not None:
                    degrees.add_metric((one.gpu, sensor), value)
        yield degrees
        limits = GaugeMetricFamily(
            "fineprint_gpu_temperature_limit_celsius",
            "Where new work pauses, and where it may begin again.",
            labels=("limit",),
        )
        limits.add_metric(("pause",), guard.pause_c)
        limits.add_metric(("resume",), guard.resume_c)
        yield limits
        yield GaugeMetricFamily(
            "fineprint_gpu_hot", "1 while no new work begins because of heat.", int(state.hot)
        )
        yield CounterMetricFamily(
            "fineprint_gpu_sensor_errors", "Looks at the temperature that failed.", state.errors
        )


def _found(now: EngineCounters) -> Mapping[str, int]:
    found = {"pool": now.hits}
    if now.memory is not None:
        found["host" if now.memory.exact else "aged"] = now.memory.hits
    if now.disk is not None:
        found["disk"] = now.disk.hits
    return found


def _memory(memory: MemoryCounters) -> Iterator[Metric]:
    yield CounterMetricFamily(
        "fineprint_kv_memory_kept", "Evicted KV blocks that were kept in host memory.", memory.kept
    )
    held = GaugeMetricFamily(
        "fineprint_kv_memory_bytes", "Host memory for evicted KV blocks.", labels=("state",)
    )
    held.add_metric(("used",), memory.bytes_held)
    held.add_metric(("free",), memory.bytes_total - memory.bytes_held)
    yield held
    yield _by_label(
        "fineprint_kv_memory_dropped",
        "KV blocks that left host memory, for others or with their documents.",
        "reason",
        memory.dropped,
    )
    yield _by_label(
        "fineprint_kv_memory_unkept",
        "Evicted KV blocks that were not kept in host memory.",
        "reason",
        memory.unkept,
    )


def _by_label(name: str, help_: str, label: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, help_, labels=(label,))
    for value, count in sorted(counts.items()):
        family.add_metric((value,), count)
    return family


def _disk(disk: DiskCounters) -> Iterator[Metric]:
    lookups = CounterMetricFamily(
        "fineprint_kv_disk_lookups",
        "Look-ups on the disk of KV blocks that memory lacked.",
        labels=("result",),
    )
    lookups.add_metric(("hit",), disk.hits)
    lookups.add_metric(("miss",), disk.misses)
    yield lookups
    moved = CounterMetricFamily(
        "fineprint_kv_disk_bytes", "Bytes of KV pages moved.", labels=("direction",)
    )
    moved.add_metric(("written",), disk.bytes_written)
    moved.add_metric(("read",), disk.bytes_read)
    yield moved
    yield GaugeMetricFamily(
        "fineprint_kv_disk_held_bytes", "Bytes of KV files there now.", disk.bytes_held
    )
    for name, help_, by_reason in (
        ("refused", "KV files and blocks that were not used.", disk.refused),
        ("unsaved", "KV blocks that were not written.", disk.unsaved),
    ):
        yield _by_label(f"fineprint_kv_disk_{name}", help_, "reason", by_reason)
