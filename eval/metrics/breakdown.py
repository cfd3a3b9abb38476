"""Groups of samples: by category, language, length of the document and depth of the evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from eval.types import SampleRecord

LengthUnit = Literal["tokens", "characters"]
Groups = dict[str, list[SampleRecord]]

K = 1024
_LENGTHS = ((4 * K, "under 4K"), (16 * K, "4K-16K"), (64 * K, "16K-64K"), (256 * K, "64K-256K"))
_LONGEST = "over 256K"
_FIFTHS = ("0-20%", "20-40%", "40-60%", "60-80%", "80-100%")


def by_category(records: Sequence[SampleRecord]) -> Groups:
    """Those that have a category, in the order of its name."""
    return _grouped([r for r in records if r.category], lambda record: record.category)


def by_language(records: Sequence[SampleRecord]) -> Groups:
    """By the document's language."""
    return _grouped(records, lambda record: record.lang)


def by_length(records: Sequence[SampleRecord]) -> Groups:
    """By length of the document in `length_unit`, shortest first; K is 1,024, a border belongs to
    the longer group."""
    unit = length_unit(records)

    def name(record: SampleRecord) -> str:
        length = record.doc_chars if unit == "characters" else record.doc_tokens or 0
        return next((label for limit, label in _LENGTHS if length < limit), _LONGEST)

    return _ordered(_grouped(records, name), [label for _, label in _LENGTHS] + [_LONGEST])


def by_depth(records: Sequence[SampleRecord]) -> Groups:
    """By the place of the first gold span in the document, in fifths; those without are left
    out."""
    placed = [record for record in records if record.depth is not None]
    grouped = _grouped(placed, lambda record: _FIFTHS[min(4, int(5 * (record.depth or 0.0)))])
    return _ordered(grouped, _FIFTHS)


def length_unit(records: Sequence[SampleRecord]) -> LengthUnit:
    """Tokens when every sample knows them, else characters for all: never both in one table."""
    known = bool(records) and all(record.doc_tokens is not None for record in records)
    return "tokens" if known else "characters"


def _grouped(records: Sequence[SampleRecord], name: Callable[[SampleRecord], str]) -> Groups:
    found: Groups = {}
    for record in sorted(records, key=name):
        found.setdefault(name(record), []).append(record)
    return found


def _ordered(groups: Groups, names: Sequence[str]) -> Groups:
    return {name: groups[name] for name in names if name in groups}
