"""Reads the source text of a sample contract into numbered parts.

The source is Markdown with four additions: `{#name}` names a clause, `{@name}` refers to it by its
number, `# Schedule: X` opens a schedule, and a line `Table: X` is the caption of the table below
it. Knows how clauses are numbered; does not know how they look on a page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import yaml

Kind = Literal["heading", "item", "subitem", "paragraph", "table"]
_ANCHOR = re.compile(r"\s*\{#([a-z0-9-]+)\}\s*$")
_REFERENCE = re.compile(r"\{@([a-z0-9-]+)\}")
_SCHEDULE = re.compile(r"^(?:Schedule|附件): ")
_DIGITS = "零一二三四五六七八九"


class SourceError(Exception):
    """The source text of a sample is not well formed; the message names the line or the name."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One paragraph or table. `number` is what stands before it ("" for none)."""

    kind: Kind
    text: str
    number: str = ""
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the contract. The front part is paged in roman numerals."""

    kind: Literal["front", "body", "schedule"]
    title: str
    number: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Contract:
    """A sample contract, ready to be set."""

    doc_id: str
    lang: Literal["en", "zh"]
    title: str
    subtitle: str
    number: str
    date: str
    parties: tuple[str, ...]
    note: str
    parts: tuple[Part, ...]


def chinese_number(value: int) -> str:
    """1 to 99 in Chinese numerals, as Word's `chineseCountingThousand` writes them."""
    if not 0 < value < 100:
        raise SourceError(f"no Chinese numeral for {value}")
    tens, units = divmod(value, 10)
    head = "" if tens == 0 else "十" if tens == 1 else f"{_DIGITS[tens]}十"
    return head + (_DIGITS[units] if units else "")


def _letter(value: int) -> str:
    return chr(ord("a") + value - 1)


@dataclass
class _Counter:
    lang: str
    in_schedule: bool = False
    schedule: int = 0
    clause: int = 0
    item: int = 0
    subitem: int = 0

    def next(self, kind: str) -> tuple[str, str]:
        """The printed number and the expression that refers to it."""
        zh = self.lang == "zh"
        if kind == "schedule":
            self.schedule, self.clause, self.in_schedule = self.schedule + 1, 0, True
            label = f"附件{chinese_number(self.schedule)}" if zh else f"Schedule {self.schedule}"
            return label, label
        if kind == "heading":
            self.clause, self.item, self.subitem = self.clause + 1, 0, 0
            if self.in_schedule:
                part = chinese_number(self.clause) if zh else _letter(self.clause).upper()
                label = f"第{part}部分" if zh else f"Part {part}:"
                return label, label.rstrip(":")
            if zh:
                label = f"第{chinese_number(self.clause)}条"
                return label, label
            return f"{self.clause}.", str(self.clause)
        if kind == "item":
            self.item, self.subitem = self.item + 1, 0
            lettered = self.in_schedule and not zh
            head = _letter(self.clause).upper() if lettered else str(self.clause)
            label = f"{head}.{self.item}"
            return label, f"第{label}款" if zh else label
        self.subitem += 1
        if zh:
            return (
                f"（{self.subitem}）",
                f"第{self.clause}.{self.item}款第（{self.subitem}）项",
            )
        label = f"({_letter(self.subitem)})"
        return label, f"{self.clause}.{self.item}{label}"


def read_contract(path: Path) -> Contract:
    """Read one source file.

    Raises:
        SourceError: a name is used twice or is unknown, or the head of the file is missing.
    """
    source = path.read_text(encoding="utf-8")
    pieces = source.split("---\n", 2)
    if len(pieces) != 3:
        raise SourceError(f"{path.name}: the file must start with a head between two lines '---'")
    head = yaml.safe_load(pieces[1])
    parts, names = _read_parts(pieces[2], head["lang"])
    return Contract(
        doc_id=head["doc_id"],
        lang=head["lang"],
        title=head["title"],
        subtitle=head["subtitle"],
        number=head["number"],
        date=str(head["date"]),
        parties=tuple(head["parties"]),
        note=head["note"],
        parts=tuple(_resolve(part, names) for part in parts),
    )


def _read_parts(body: str, lang: str) -> tuple[list[Part], dict[str, str]]:
    counter = _Counter(lang)
    names: dict[str, str] = {}
    parts: list[Part] = []
    entries: list[Entry] = []
    caption = ""

    def number(kind: str, text: str) -> tuple[str, str]:
        label, reference = counter.next(kind)
        found = _ANCHOR.search(text)
        if found:
            if found[1] in names:
                raise SourceError(f"the name {found[1]!r} is used twice")
            names[found[1]] = reference
        return label, _ANCHOR.sub("", text)

    for line in body.splitlines():
        if not line.strip():
            continue
        if line.startswith("# "):
            title = line[2:]
            label = ""
            kind: Literal["front", "body", "schedule"] = "body" if parts else "front"
            if _SCHEDULE.match(title):
                kind = "schedule"
                label, title = number("schedule", _SCHEDULE.sub("", title))
            entries = []
            parts.append(Part(kind, title, label, ()))
        elif line.startswith("## "):
            label, text = number("heading", line[3:])
            entries.append(Entry("heading", text, label))
        elif line.startswith("- "):
            label, text = number("item", line[2:])
            entries.append(Entry("item", text, label))
        elif line.startswith("  - "):
            label, text = number("subitem", line[4:])
            entries.append(Entry("subitem", text, label))
        elif line.startswith("Table: "):
            caption = line[7:]
        elif line.startswith("|"):
            cells = tuple(cell.strip() for cell in line.strip().strip("|").split("|"))
            if entries and entries[-1].kind == "table" and not caption:
                entries[-1] = replace(entries[-1], rows=(*entries[-1].rows, cells))
            else:
                entries.append(Entry("table", caption, rows=(cells,)))
                caption = ""
        else:
            entries.append(Entry("paragraph", line))
        parts[-1] = replace(parts[-1], entries=tuple(entries))
    return parts, names


def _resolve(part: Part, names: dict[str, str]) -> Part:
    def number_of(match: re.Match[str]) -> str:
        if match[1] not in names:
            raise SourceError(f"{part.title}: no clause is named {match[1]!r}")
        return names[match[1]]

    entries = []
    for entry in part.entries:
        rows = entry.rows
        if rows:
            # The second row of a Markdown table is its rule.
            rows = (rows[0], *rows[2:])
        entries.append(replace(entry, text=_REFERENCE.sub(number_of, entry.text), rows=rows))
    return replace(part, entries=tuple(entries))


def right_aligned(rows: tuple[tuple[str, ...], ...]) -> tuple[bool, ...]:
    """Which columns hold figures only, so that they are set flush right."""
    return tuple(
        all(not cell or cell.replace(",", "").replace(".", "").isdigit() for cell in column)
        for column in zip(*rows[1:], strict=True)
    )
