"""How each term is worded in contracts: the rules of `rules.toml`, read once.

A rule is a pattern over one sentence in plain form (see `passages.plain`). It knows wordings only;
what the sentence is worth is read in `values`.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, cast, get_args

from app.errors import AppError
from app.terms.types import TermName
from retrieval.types import Language

_FILE = Path(__file__).with_name("rules.toml")
ValueKind = Literal["law", "duration", "notice", "within", "money", "cap", "figure", "time", "text"]


@dataclass(frozen=True, slots=True)
class Wording:
    """A sentence that matches `match` and not `unless` states the term; with `near` only when
    retrieval finds it for one of the term's questions."""

    match: re.Pattern[str]
    unless: re.Pattern[str] | None
    near: bool

    def fits(self, plain: str) -> bool:
        """Whether a sentence in plain form is worded so."""
        return bool(self.match.search(plain)) and not (self.unless and self.unless.search(plain))


@dataclass(frozen=True, slots=True)
class Rule:
    """A term: the question that retrieval is asked, the wordings, the kind of its values and
    whether a contract should give only one value."""

    name: TermName
    kind: ValueKind
    single: bool
    needs_value: bool
    questions: dict[Language, str]
    wordings: dict[Language, tuple[Wording, ...]]


@lru_cache(maxsize=1)
def rules() -> dict[TermName, Rule]:
    """All rules by term. Raises AppError when the shipped file names an unknown term."""
    found: dict[TermName, Rule] = {}
    for name, table in tomllib.loads(_FILE.read_text(encoding="utf-8")).items():
        if name not in get_args(TermName) or table["kind"] not in get_args(ValueKind):
            raise AppError(f"{_FILE.name}: [{name}] is not a key term or has no known kind.")
        term = cast("TermName", name)
        found[term] = Rule(
            term,
            table["kind"],
            table.get("single", False),
            table.get("needs_value", False),
            {"en": table["ask_en"], "zh": table["ask_zh"]},
            {"en": _wordings(table["en"]), "zh": _wordings(table["zh"])},
        )
    return found


def _wordings(entries: list[dict[str, str | bool]]) -> tuple[Wording, ...]:
    return tuple(
        Wording(
            re.compile(str(entry["match"])),
            re.compile(str(entry["unless"])) if "unless" in entry else None,
            bool(entry.get("near", False)),
        )
        for entry in entries
    )
