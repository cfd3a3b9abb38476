"""The words cold, warm and mixed, as measured; what a load was meant to be does not count."""

from __future__ import annotations

from eval.benchmarks.mixed.types import CellRecord, Label, Reuse
from eval.errors import NotCold

WARM_RATE = 0.99
"""Servers that cache whole blocks never reuse the last few tokens of a prompt."""


def label_of(reuse: Reuse) -> Label:
    """Cold: nothing was reused. Warm: everything, but for the rest of a block. Unknown: the server
    does not tell."""
    rate = reuse.rate
    if rate is None:
        return "unknown"
    if reuse.reused == 0:
        return "cold"
    return "warm" if rate >= WARM_RATE else "mixed"


def require_claim(cell: CellRecord) -> None:
    """Raises NotCold for a cell that was to be cold and met tokens that were already there."""
    if cell.claim != "cold" or not cell.reuse.reused:
        return
    known = [record.request_id for record in cell.records if record.known]
    hint = f" The server had the documents of {', '.join(known[:5])} before." if known else ""
    raise NotCold(
        f"The load “{cell.cell}” was to be cold, but {cell.reuse.reused:,} of its "
        f"{cell.reuse.tokens:,} document tokens were there already (by the {cell.reuse.source})."
        f"{hint} Use another --seed, or an empty server (--serve starts one)."
    )
