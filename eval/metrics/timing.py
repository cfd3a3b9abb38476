"""First-token times of a run. Cold and warm never share a figure, except under the name of all.

Cold: document tokens were read for this question; warm: none were. Knows nothing of why.
"""

from __future__ import annotations

from collections.abc import Sequence

from eval.statistics import P99_SAMPLES, percentiles
from eval.types import SampleRecord


def first_token_times(records: Sequence[SampleRecord]) -> dict[str, object]:
    """`ttft_ms` over all replies that showed a token, `ttft_cold_ms` and `ttft_warm_ms` apart, in
    milliseconds; `ttft_kind` says which of them the first is made of. A mode without a model
    (`doc_tokens` is None and nothing read or cached) is neither cold nor warm."""
    times = [
        (record, record.reply.timings.ttft_ms)
        for record in records
        if record.reply is not None and record.reply.timings.ttft_ms is not None
    ]
    cold = [ms for record, ms in times if is_cold(record)]
    warm = [ms for record, ms in times if is_cold(record) is False]
    kinds = [name for name, group in (("cold", cold), ("warm", warm)) if group]
    return {
        "ttft_ms": _rounded([ms for _, ms in times]),
        "ttft_cold_ms": _rounded(cold),
        "ttft_warm_ms": _rounded(warm),
        "ttft_kind": "mixed" if len(kinds) == 2 else kinds[0] if kinds else None,
    }


def is_cold(record: SampleRecord) -> bool | None:
    """Whether document tokens were read for this question; None where no model reads documents."""
    if record.reply is None:
        return None
    usage = record.reply.usage
    if record.doc_tokens is None and not usage.read_tokens and not usage.cached_tokens:
        return None
    return usage.read_tokens > 0


def _rounded(values: Sequence[float]) -> dict[str, float | int | None]:
    found = percentiles(values)
    row: dict[str, float | int | None] = {"n": found.n, "p50": found.p50, "p95": found.p95}
    if found.n >= P99_SAMPLES:
        row["p99"] = found.p99
    return {name: round(v, 1) if isinstance(v, float) else v for name, v in row.items()}
