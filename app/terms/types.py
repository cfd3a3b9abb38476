"""Values that travel out of the key terms. Offsets are half-open code points of the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from retrieval.compare.types import Place

TermName = Literal[
    "parties",
    "agreement_date",
    "effective_date",
    "term",
    "renewal",
    "renewal_notice",
    "amounts",
    "payment_period",
    "liability_cap",
    "liquidated_damages",
    "termination_for_convenience",
    "notice_periods",
    "governing_law",
    "disputes",
]
State = Literal["stated", "left_blank", "not_stated"]


@dataclass(frozen=True, slots=True)
class TermValue:
    """One thing that the contract says about a term.

    `value` is the normal form of `words` ("2024-03-01", "30 day", "1250000 EUR", "New York"); None
    when the words have none, so that the words themselves are the value. `passage` is the sentence
    around the words. `blank`: the place for the value is empty or blacked out. `names` are the
    defined names and roles of a party, empty for other terms.
    """

    value: str | None
    words: Place
    passage: Place
    blank: bool = False
    names: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyTerm:
    """A term with everything found for it in the order of the text.

    `conflicting`: it should have one value and the text gives several. `reason` says why it counts
    as not stated; `nearest` is then the closest passage that was found, if any.
    """

    name: TermName
    state: State
    values: tuple[TermValue, ...]
    conflicting: bool = False
    reason: str = ""
    nearest: Place | None = None
