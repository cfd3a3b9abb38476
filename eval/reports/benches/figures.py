"""Every table and chart of the given benchmark records, in the order of the records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from eval.errors import RunError
from eval.reports.benches.decoding import decoding_parts
from eval.reports.benches.first_token import first_token_parts
from eval.reports.benches.kernels import kernel_parts
from eval.reports.benches.load import load_parts
from eval.reports.benches.record import BenchRecord, bench_table
from eval.reports.types import Chart, Table

Parts = Iterator[Table | Chart]
_PARTS: dict[str, Callable[[BenchRecord, int], Parts]] = {
    "ttft": first_token_parts,
    "mixed": load_parts,
    "decode": decoding_parts,
    "kernels": kernel_parts,
}


def bench_parts(records: Sequence[BenchRecord]) -> tuple[tuple[Table, ...], tuple[Chart, ...]]:
    """Tables and charts. Raises RunError for a record whose figures are not as its benchmark
    writes them."""
    if not records:
        return (), ()
    tables: list[Table] = [bench_table(records)]
    charts: list[Chart] = []
    for number, record in enumerate(records, start=1):
        for part in _parts(record, number):
            if isinstance(part, Table):
                tables.append(part)
            else:
                charts.append(part)
    return tuple(tables), tuple(charts)


def _parts(record: BenchRecord, number: int) -> list[Table | Chart]:
    make = _PARTS.get(record.bench)
    if make is None:
        known = ", ".join(_PARTS)
        raise RunError(
            f"{record.name} is of benchmark {record.bench!r}; a report has tables for {known}. "
            "Leave it out."
        )
    try:
        return list(make(record, number))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise RunError(
            f"{record.name}: its figures are not as bench {record.bench} writes them "
            f"({type(error).__name__}: {error}). Measure again with this version."
        ) from error
