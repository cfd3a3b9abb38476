"""Plants twelve known changes in a contract, to measure a comparison of the two texts.

The changes: a figure, a date, a unit, a negation, a party's name, a deleted, an added and a moved
clause, a renumbered section with its references, a word near the end (schedules and tables), a
notice period in words and a cross-reference. A contract without a place for one of them gets
fewer. It does not know which contracts read naturally afterwards.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from retrieval.clauses import outline
from retrieval.compare.furniture import find_furniture
from retrieval.headings import candidates
from retrieval.types import Clause, Language

PlantKind = Literal[
    "figure", "date", "unit", "negation", "party", "deleted", "added", "moved", "renumbered",
    "word", "notice", "reference",
]  # fmt: skip
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Splice:
    """`text[start:end]` of the old version becomes `new`. A moved clause is two of them."""

    start: int
    end: int
    new: str
    kind: PlantKind


@dataclass(frozen=True, slots=True)
class Plant:
    """One planted change: its spans in both versions (empty where there is none)."""

    kind: PlantKind
    old: tuple[Span, ...]
    new: tuple[Span, ...]


Change = Callable[[re.Match[str]], str | None]

_NUMBER_WORDS = {
    "thirty": "sixty", "ten": "fifteen", "fifteen": "ten", "sixty": "ninety", "ninety": "sixty",
    "twenty": "forty", "two": "nine", "three": "seven", "four": "eleven", "five": "eight",
    "six": "nine", "seven": "twelve", "twelve": "eighteen", "fourteen": "twenty-one",
}  # fmt: skip
_ZH_DAYS = {
    "三十": "六十", "十五": "二十", "十": "十五", "六十": "九十", "二十": "三十", "九十": "六十",
    "30": "45", "15": "20", "10": "18",
}  # fmt: skip
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_ADDED = {
    "en": "{n} Cooperation with Audits. Each quarter the parties exchange a written summary of "
    "open audit findings, and the party in default repairs every finding at its own expense.",
    "zh": "{n} 双方每季度交换一份关于未决审计事项的书面摘要，"
    "违约一方自费纠正每一事项，并将结果存档备查。",
}
_SECTION = re.compile(r"(?:ARTICLE |Section |Article )?\d{1,2}\.?|第[一二三四五六七八九十]+条")
_WORD = {
    "en": r"\b[a-z]{5,}\b",
    "zh": r"(?<=[\u4e00-\u9fff])(?:设备|产品|材料|费用|技术|资料|工程)(?=[\u4e00-\u9fff])",
}
_PARTY = {
    "en": r"\b[A-Z][A-Za-z]{3,}"
    r"(?=,? (?:Inc|Ltd|LLC|Limited|Corp|Corporation|Company|S\.A|plc)\b)",
    "zh": r"甲方|买方|卖方|乙方",
}


def plant(text: str, language: Language, seed: int) -> tuple[str, tuple[Plant, ...]]:
    """The new version and what was planted in it."""
    planter = _Planter(text, language, random.Random(seed))
    return planter.planted()


class _Planter:
    def __init__(self, text: str, language: Language, chance: random.Random) -> None:
        self.text, self.language, self.chance = text, language, chance
        self.clauses = outline(text)
        self.splices: list[Splice] = []
        # A change in a page header is none of the contract.
        self.taken: list[Span] = list(find_furniture(text, ()).spans)

    def planted(self) -> tuple[str, tuple[Plant, ...]]:
        leaves = self._leaves()
        self._renumber()
        self._clauses(leaves)
        self._word_near_end()
        self._party()
        for kind, pattern, change in _STEPS[self.language]:
            self._pattern(kind, pattern, change)
        return self._assembled()

    def _free(self, start: int, end: int) -> bool:
        # Neighbours would melt into one difference; a hundred characters keep plants apart.
        return not any(start < b + 100 and a - 100 < end for a, b in self.taken)

    def _add(self, splice: Splice, guard: Span | None = None) -> None:
        self.splices.append(splice)
        self.taken.append(guard or (splice.start, splice.end))

    def _pattern(self, kind: PlantKind, pattern: str, change: Change) -> None:
        if any(splice.kind == kind for splice in self.splices):
            return
        matches = list(re.finditer(pattern, self.text))
        self.chance.shuffle(matches)
        numbers = [(c.start, c.end) for c in candidates(self.text)]
        for match in matches:
            group = next((g for g in range(1, (match.lastindex or 0) + 1) if match[g]), 0)
            start, end = match.span(group)
            new = change(match)
            at_number = any(start < b and a < end for a, b in numbers)
            if new is not None and not at_number and self._free(start, end):
                self._add(Splice(start, end, new, kind))
                return

    def _leaves(self) -> list[Clause]:
        parents = {clause.parent for clause in self.clauses}
        low, high = (80, 900) if self.language == "en" else (30, 300)
        leaves = [
            clause
            for clause in self.clauses
            if clause.index not in parents
            and clause.number
            and low <= len(self.text[clause.start : clause.end].strip()) <= high
            and clause.start
            and self.text[clause.start - 1] in "\n \t\u3000"
            and self.text[: clause.end].rstrip()[-1:] in ".;。；"
        ]
        self.chance.shuffle(leaves)
        return leaves

    def _clauses(self, leaves: list[Clause]) -> None:
        def take() -> Clause | None:
            for clause in leaves:
                if self._free(clause.start, clause.end):
                    return clause
            return None

        gone = take()
        if gone is not None:
            self._add(Splice(gone.start, gone.end, "", "deleted"))
        away = take()
        if away is not None:
            body = self.text[away.start : away.end]
            goal = next(
                (
                    clause
                    for clause in leaves
                    if self._free(clause.end, clause.end)
                    and abs(clause.start - away.start) > len(self.text) // 20
                ),
                None,
            )
            if goal is not None:
                self._add(Splice(away.start, away.end, "", "moved"))
                self._add(
                    Splice(goal.end, goal.end, body.rstrip() + "\n", "moved"),
                    (goal.end - 1, goal.end + 1),
                )
        before = next((c for c in leaves if self._free(c.end, c.end)), None)
        if before is not None:
            number = re.sub(r"\d+", lambda m: str(int(m[0]) + 50), before.number, count=1)
            body = _ADDED[self.language].format(n=number)
            gap = "" if self.text[before.end - 1 : before.end] == "\n" else "\n"
            self._add(
                Splice(before.end, before.end, gap + body + "\n", "added"),
                (before.end - 1, before.end + 1),
            )

    def _renumber(self) -> None:
        """Gives a section, its clauses and the references to it another number."""
        numbered = [
            clause
            for clause in self.clauses
            if _SECTION.fullmatch(clause.number)
            and self.text[: clause.start].rstrip(" \t\u3000")[-1:] in ("\n", "")
        ]
        self.chance.shuffle(numbered)
        for clause in numbered[:1]:
            digits = re.search(r"\d+", clause.number)
            if digits is None:
                at = self.text.index(clause.number, clause.start)
                self._add(Splice(at + 1, at + len(clause.number) - 1, "九十七", "renumbered"))
                continue
            value, goal = digits[0], str(int(digits[0]) + 60)
            at = self.text.index(value, clause.start)
            self._add(Splice(at, at + len(value), goal, "renumbered"))
            for inner in self.clauses:
                if clause.start < inner.start < clause.end and inner.number.startswith(value + "."):
                    self._add(Splice(inner.start, inner.start + len(value), goal, "renumbered"))
            starts = {splice.start for splice in self.splices}
            pattern = (
                rf"(?:Section|Article|Clause|Sections)\s+({value})"
                r"(?![\d]|\.\d\d?\d)(?=[.\s,;)(]|\.\d)"
            )
            for match in re.finditer(pattern, self.text):
                if match.start(1) not in starts:
                    self._add(Splice(match.start(1), match.end(1), goal, "renumbered"))

    def _word_near_end(self) -> None:
        tail = int(len(self.text) * 0.85)
        words = [m for m in re.finditer(_WORD[self.language], self.text) if m.start() > tail]
        self.chance.shuffle(words)
        for match in words:
            if self._free(*match.span()):
                new = "harbour" if self.language == "en" else "木箱"
                self._add(Splice(*match.span(), new, "word"))
                return

    def _party(self) -> None:
        self._pattern("party", _PARTY[self.language], _other_party)

    def _assembled(self) -> tuple[str, tuple[Plant, ...]]:
        pieces: list[str] = []
        at = length = 0
        spans: dict[PlantKind, tuple[list[Span], list[Span]]] = {}
        for splice in sorted(self.splices, key=lambda one: (one.start, one.end)):
            before = self.text[at : splice.start]
            length += len(before)
            pieces += [before, splice.new]
            old, new = spans.setdefault(splice.kind, ([], []))
            old.append((splice.start, splice.end))
            new.append((length, length + len(splice.new)))
            length += len(splice.new)
            at = splice.end
        pieces.append(self.text[at:])
        plants = tuple(Plant(kind, tuple(old), tuple(new)) for kind, (old, new) in spans.items())
        return "".join(pieces), plants


def _word(match: re.Match[str]) -> str | None:
    return _NUMBER_WORDS.get(match[1])


def _zh_days(match: re.Match[str]) -> str | None:
    return _ZH_DAYS.get(match[1])


def _day(match: re.Match[str]) -> str:
    return str(int(match[1]) % 27 + 1)


def _first_day(match: re.Match[str]) -> str:
    day, _, rest = match[0].partition(" ")
    return f"{int(day) % 27 + 1} {rest}"


def _next_number(match: re.Match[str]) -> str:
    head, _, last = match[1].rpartition(".")
    return f"{head}.{int(last) + 7}" if head else str(int(last) + 7)


def _zh_next(match: re.Match[str]) -> str:
    return _next_number(match) if match[1][0].isdigit() else "八十八"


def _unit(match: re.Match[str]) -> str:
    return {"days": "months", "months": "years", "years": "months"}[match[1]]


def _zh_unit(match: re.Match[str]) -> str:
    return {"天": "个月", "日": "个月", "个月": "年"}[match[1]]


def _figure(match: re.Match[str]) -> str:
    digits = match[1] or match[2]
    return str(int(digits[0]) % 9 + 1) + digits[1:]


def _not(match: re.Match[str]) -> str:
    return f"{match[0]} not"


def _zh_not(match: re.Match[str]) -> str:
    return f"不{match[0]}"


def _other_party(match: re.Match[str]) -> str:
    others = {"甲方": "乙方", "乙方": "甲方", "买方": "卖方", "卖方": "买方"}
    return others.get(match[0], "Quillmark")


_STEPS: dict[Language, list[tuple[PlantKind, str, Change]]] = {
    "en": [
        (
            "notice",
            rf"\b({'|'.join(_NUMBER_WORDS)})"
            r"(?= (?:\(\d+\) ?)?(?:calendar |business |Business )?(?:[Dd]ays|weeks|months)\b)",
            _word,
        ),
        ("date", rf"\b(?:\d{{1,2}}) (?:{_MONTHS}) (?:19|20)\d\d", _first_day),
        ("date", rf"\b(?:{_MONTHS}) (\d{{1,2}}), (?:19|20)\d\d", _day),
        (
            "reference",
            r"\b(?:Section|Article|[Cc]lause) (\d+(?:\.\d+)?)(?![\d.]*\d)",
            _next_number,
        ),
        ("unit", r"\b\d+\)? (days|months|years)\b", _unit),
        ("figure", r"(?:\$|USD |EUR |GBP )(\d[\d,]*)|\b(\d{1,2})%", _figure),
        ("negation", r"\b(?:shall|will|may)(?= (?:be|have|make|provide|pay|use|the))", _not),
    ],
    "zh": [
        ("notice", r"(三十|十五|六十|九十|二十|30|15|10)(?=[日天])", _zh_days),
        ("date", r"\d{4}年\d{1,2}月(\d{1,2})日", _day),
        (
            "reference",
            r"(?:按照?|依照|根据|本合同|符合)第(\d+(?:\.\d+)?|[一二三四五六七八九十]+)(?=[条款])",
            _zh_next,
        ),
        (
            "unit",
            r"(?:\d+|[一二三四五六七八九十]+)(天|日(?!本|期)|个月)(?=内|前|后|之内|以内)",
            _zh_unit,
        ),
        ("figure", r"(\d{1,3}(?:\.\d+)?)[%％]|(\d[\d,]{2,})元", _figure),
        ("negation", r"(?<![不相对反适])(?:应当?|必须|可以)(?=[按在向由将提支承负])", _zh_not),
    ],
}
