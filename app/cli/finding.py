"""One thing that `fineprint doctor` looked at."""

from __future__ import annotations

from dataclasses import dataclass

GIGABYTE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Finding:
    """`detail` says what was found and, when not `ok`, what to do."""

    name: str
    ok: bool
    detail: str
