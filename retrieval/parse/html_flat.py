"""Takes nesting out of HTML that is deeper than its parser goes, and leaves every word.

An element that only makes lines becomes a line break, one that makes none goes; tables, lists and
hidden elements stay down to a stated depth. It reads tags, not the rules by which browsers repair
them: a table that lies deeper than that is read as lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable

# A missing close goes on to the end, so that no part is looked at twice, whatever it holds.
_MARKUP = re.compile(
    r"<(?P<raw>script|style|(?:title|textarea)(?![^>]*/>))\b[^>]*(?:>|\Z)"
    r".*?(?:</(?P=raw)[^>]*(?:>|\Z)|\Z)"
    r"|<!--.*?(?:-->|\Z)"
    r"|<(?P<close>/?)(?P<tag>[a-z][^\s/>]*)"
    r"(?P<rest>(?:=\s*\"[^\"]*(?:\"|\Z)|=\s*'[^']*(?:'|\Z)|[^>])*+)(?:>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_SHAPING = frozenset(
    ["table", "thead", "tbody", "tfoot", "tr", "td", "th", "caption", "ol", "ul", "li", "pre"]
)
_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "wbr"]
)
_PAGE = frozenset(["html", "head", "body", "title"])
_CLOSED_BY = {
    "li": frozenset(["li"]),
    "td": frozenset(["td", "th"]),
    "th": frozenset(["td", "th"]),
    "tr": frozenset(["td", "th", "tr"]),
    "dt": frozenset(["dt", "dd"]),
    "dd": frozenset(["dt", "dd"]),
    "option": frozenset(["option"]),
}
"""Open elements that the start of another one ends; every start of a block ends a paragraph."""
_BOUNDS = _SHAPING | frozenset(["p", "dl", "dt", "dd", "option"])
"""Elements that the start of another one ends, or that keep it from what is open around them."""
_RANKS = {"p": 0, "div": 2, "td": 3, "th": 3, "tr": 4}
_RANKS |= dict.fromkeys(("thead", "tbody", "tfoot"), 5) | {"table": 6}
"""What an end tag can't end: elements of a higher rank than its own. Other blocks are 1."""
_BREAK = "\n<br>"
_LEFT_OUT_DEPTH = 200
"""Elements that are left out and lie in each other, as far as they are told apart."""


def flatten(
    source: str,
    depth: int,
    *,
    breaks: Callable[[str], bool],
    left_out: Callable[[str, str], bool],
) -> str:
    """The same page with shaping elements (tables, lists) only down to `depth`.

    `breaks` says for an element's name whether it starts a line, `left_out` for its name and
    attributes whether it isn't shown.
    """
    pieces: list[str] = []
    nest = _Nest()
    at = 0
    for found in _MARKUP.finditer(source):
        pieces.append(source[at : found.start()])
        at = found.end()
        name = (found["tag"] or "").lower()
        line = _BREAK if breaks(name) else ""
        if not name or name in _VOID or name in _PAGE:
            pieces.append(found[0])
        elif found["close"]:
            ends = nest.close(name)
            pieces.append(ends if ends.endswith(f"</{name}>") else ends + line)
        else:
            pieces.append(nest.closed_by(name, block=bool(line)))
            unseen = left_out(name, found["rest"])
            deepest = _LEFT_OUT_DEPTH if unseen else depth if name in _SHAPING else 0
            kept = nest.depth < deepest
            # Every element counts, so that its end also ends what was left open in it.
            if not _is_empty(found["rest"]):
                nest.open(name, kept, unseen, block=bool(line))
            pieces.append(found[0] if kept else line)
    pieces.append(source[at:])
    return "".join(pieces)


def _is_empty(rest: str) -> bool:
    """Whether a start tag is its end too (<p/>), by what follows its name."""
    if not rest.endswith("/"):
        return False
    last = rest[:-1].rsplit(None, 1)[-1:]
    # A value without quotes ends in the slash: <a href=folder/>.
    return not last or "=" not in last[0] or last[0].endswith(('"', "'"))


class _Nest:
    """The elements that are open, each with its rank and whether its tags are written; `depth` of
    those are."""

    def __init__(self) -> None:
        self.depth = 0
        self._open: list[tuple[str, bool, int]] = []
        self._places: dict[str, list[int]] = {}
        self._ranked: list[list[int]] = [[] for _ in range(max(_RANKS.values()) + 1)]
        self._bounds: list[int] = []

    def open(self, name: str, kept: bool, unseen: bool, *, block: bool) -> None:
        place, rank = len(self._open), _rank(name, block)
        self._open.append((name, kept, rank))
        self._places.setdefault(name, []).append(place)
        self._ranked[rank].append(place)
        if unseen or name in _BOUNDS:
            self._bounds.append(place)
        self.depth += kept

    def close(self, name: str) -> str:
        """Ends the last `name` and what is open in it; gives the tags that say so."""
        places = self._places.get(name)
        if not places:
            return ""
        place = places[-1]
        rank = self._open[place][2]
        # A table's and a list's end ends all in it, whatever was left open.
        if name not in _SHAPING and any(
            higher and higher[-1] > place for higher in self._ranked[rank + 1 :]
        ):
            return ""
        return self._end(place)

    def closed_by(self, name: str, *, block: bool) -> str:
        """Ends what the start of `name` ends."""
        ended = _CLOSED_BY.get(name, frozenset[str]())
        ends = ""
        while self._bounds:
            last = self._open[self._bounds[-1]][0]
            if last not in ended and not (block and last == "p"):
                break
            ends += self._end(self._bounds[-1])
        return ends

    def _end(self, place: int) -> str:
        """Ends the element at `place` and what is open in it."""
        ends = ""
        while len(self._open) > place:
            name, kept, rank = self._open.pop()
            self._places[name].pop()
            self._ranked[rank].pop()
            self.depth -= kept
            ends += f"</{name}>" if kept else ""
        while self._bounds and self._bounds[-1] >= place:
            self._bounds.pop()
        return ends


def _rank(name: str, block: bool) -> int:
    return _RANKS.get(name, int(block))
