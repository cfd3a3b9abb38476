"""Style and list tables of a DOCX, and the number that each list paragraph shows (ECMA-376 17.9).

It knows nothing of text: the body reader asks it paragraph by paragraph, in document order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lxml import etree

from retrieval.parse.numerals import bounded, numeral

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MAX_LEVEL = 8
_STYLE_DEPTH = 20


def value(node: etree._Element | None, path: str) -> str | None:
    """The w:val of the child at `path` ("pPr/numPr/numId"), None when there is none."""
    if node is None:
        return None
    found = node.find("/".join(W + step for step in path.split("/")))
    return None if found is None else found.get(W + "val")


def is_on(node: etree._Element | None, path: str) -> bool | None:
    """A Word on/off property: None when it is not stated."""
    if node is None:
        return None
    found = node.find("/".join(W + step for step in path.split("/")))
    if found is None:
        return None
    return found.get(W + "val", "1") not in ("0", "false", "off")


@dataclass(frozen=True, slots=True)
class _Level:
    start: int
    kind: str
    text: str
    suffix: str
    restart: int | None
    legal: bool
    style: str | None


@dataclass(slots=True)
class _List:
    """One w:num: its abstract list, its own levels and the starts it overrides."""

    abstract: str
    levels: dict[int, _Level]
    starts: dict[int, int]
    started: set[int] = field(default_factory=set)


class Styles:
    """Looks up what a style or the styles it is based on say."""

    def __init__(self, root: etree._Element | None) -> None:
        self._styles: dict[str, etree._Element] = {}
        self.default: str | None = None
        if root is not None:
            for style in root.iter(W + "style"):
                name = style.get(W + "styleId", "")
                self._styles[name] = style
                if style.get(W + "type") == "paragraph" and style.get(W + "default") in (
                    "1",
                    "true",
                ):
                    self.default = name

    def is_hidden(self, name: str | None) -> bool:
        """Whether the style hides its text (w:vanish)."""
        for style in self._chain(name):
            hidden = is_on(style, "rPr/vanish")
            if hidden is not None:
                return hidden
        return False

    def list_of(self, name: str | None) -> tuple[str | None, int | None, str | None]:
        """(list id, level, style that states it) of a paragraph style; None where unstated."""
        level: int | None = None
        for style in self._chain(name):
            stated = value(style, "pPr/numPr/ilvl")
            if level is None and stated is not None:
                level = bounded(stated, 0)
            number = value(style, "pPr/numPr/numId")
            if number is not None:
                return number, level, style.get(W + "styleId")
        return None, level, None

    def _chain(self, name: str | None) -> list[etree._Element]:
        chain: list[etree._Element] = []
        while name is not None and name in self._styles and len(chain) < _STYLE_DEPTH:
            chain.append(self._styles[name])
            name = value(self._styles[name], "basedOn")
        return chain


class Numbering:
    """Counts list paragraphs in document order. Lists of one abstract list share counters."""

    def __init__(self, root: etree._Element | None, styles: Styles) -> None:
        self._styles = styles
        self._lists: dict[str, _List] = {}
        self._counters: dict[str, dict[int, int]] = {}
        if root is not None:
            self._load(root)

    def label(self, paragraph: etree._Element) -> str:
        """The number or bullet shown before a paragraph with what follows it; "" without a list."""
        properties = paragraph.find(W + "pPr")
        style = value(properties, "pStyle") or self._styles.default
        number, level, source = self._styles.list_of(style)
        own_number, own_level = value(properties, "numPr/numId"), value(properties, "numPr/ilvl")
        if own_number is not None:
            number, source = own_number, None
        if own_level is not None:
            level = bounded(own_level, 0)
        if number is None or number == "0" or number not in self._lists:
            return ""
        listed = self._lists[number]
        if level is None:
            level = self._level_of_style(listed, source or style)
        level = min(max(level, 0), _MAX_LEVEL)
        return self._count(listed, level)

    def _count(self, listed: _List, level: int) -> str:
        definition = listed.levels.get(level)
        if definition is None:
            return ""
        counters = self._counters.setdefault(listed.abstract, {})
        if level in listed.starts and level not in listed.started:
            counters[level] = listed.starts[level] - 1
        listed.started.add(level)
        counters[level] = counters.get(level, definition.start - 1) + 1
        for deeper in [key for key in counters if key > level]:
            restart = listed.levels[deeper].restart if deeper in listed.levels else None
            # lvlRestart 0: never; n: only when level n (1-based) or a higher one counts.
            if restart is None or (restart > 0 and level < restart):
                del counters[deeper]
        return self._shown(listed, definition, counters)

    def _shown(self, listed: _List, definition: _Level, counters: dict[int, int]) -> str:
        if definition.kind == "bullet":
            return "• "
        if definition.kind == "none" and "%" not in definition.text:
            shown = definition.text
        else:

            def number(match: re.Match[str]) -> str:
                index = int(match.group(1)) - 1
                level = listed.levels.get(index)
                if level is None:
                    return ""
                count = counters.get(index, level.start)
                return numeral(count, "decimal" if definition.legal else level.kind)

            shown = re.sub(r"%([1-9])", number, definition.text)
        if not shown.strip():
            return ""
        return shown.rstrip() + ("" if definition.suffix == "nothing" else " ")

    def _level_of_style(self, listed: _List, style: str | None) -> int:
        for index, level in listed.levels.items():
            if style is not None and level.style == style:
                return index
        return 0

    def _load(self, root: etree._Element) -> None:
        abstract: dict[str, etree._Element] = {}
        by_style: dict[str, str] = {}
        for node in root.findall(W + "abstractNum"):
            key = node.get(W + "abstractNumId", "")
            abstract[key] = node
            link = value(node, "styleLink")
            if link is not None:
                by_style[link] = key
        for node in root.findall(W + "num"):
            key = value(node, "abstractNumId") or ""
            definition = abstract.get(key)
            linked = value(definition, "numStyleLink")
            if linked is not None and linked in by_style:
                key = by_style[linked]
                definition = abstract[key]
            if definition is None:
                continue
            levels = {_ilvl(level): _level(level) for level in definition.findall(W + "lvl")}
            starts: dict[int, int] = {}
            for override in node.findall(W + "lvlOverride"):
                index = _ilvl(override)
                replaced = override.find(W + "lvl")
                if replaced is not None:
                    levels[index] = _level(replaced)
                start = value(override, "startOverride")
                if start is not None:
                    starts[index] = bounded(start, 1)
            self._lists[node.get(W + "numId", "")] = _List(key, levels, starts)


def _level(node: etree._Element) -> _Level:
    restart = value(node, "lvlRestart")
    # A custom format is wrapped in mc:AlternateContent, with a plain one as the fallback.
    kind = value(node, "numFmt")
    if kind is None:
        found = list(node.iter(W + "numFmt"))
        kind = found[-1].get(W + "val") if found else None
    return _Level(
        start=bounded(value(node, "start"), 0),
        kind=kind or "decimal",
        text=value(node, "lvlText") or "",
        suffix=value(node, "suff") or "tab",
        restart=None if restart is None else bounded(restart, 0),
        legal=bool(is_on(node, "isLgl")),
        style=value(node, "pStyle"),
    )


def _ilvl(node: etree._Element) -> int:
    return bounded(node.get(W + "ilvl"), 0)
