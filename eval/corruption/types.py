"""Values that travel through the measurement of answer checks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal

from retrieval.types import Language

Kind = Literal[
    "figure", "date", "unit", "currency", "negation", "duration", "percentage", "clause"
]  # fmt: skip
KINDS: tuple[Kind, ...] = (
    "figure", "date", "unit", "currency", "negation", "duration", "percentage", "clause",
)  # fmt: skip
Form = Literal["quote", "sentence", "short"]
"""`quote`: the gold span in quotation marks, as an answer leads with it; `sentence`: words of the
span as a sentence of the answer, perhaps reworded; `short`: one value in a sentence of its own."""


@dataclass(frozen=True, slots=True)
class Place:
    """A value at `text[start:end]` of a gold text. `value` is a number, a date or a clause label;
    `unit` is a currency code, "%", a period, or a unit as written."""

    start: int
    end: int
    kind: Kind
    value: Decimal | date | str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """One answer to check against its cited spans, the one it was made of first. `altered` says
    whether one thing in it was changed; `before` and `after` are that thing (or the same value in
    another form)."""

    kind: Kind
    language: Language
    form: Form
    answer: str
    spans: tuple[str, ...]
    altered: bool
    before: str
    after: str
