"""Takes nesting out of HTML that is deeper than its parser goes, and leaves every word.

An element that only makes lines becomes a line break, one that makes none goes; tables, lists and
hidden elements stay down to a stated depth. It reads tags, not the rules by which browsers repair
them: a table that lies deeper than that is read as lines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

# A missing close goes on to the end, so that no part is looked at twice, whatever it holds.
_MARKUP = re.compile(
    r"<(?P<raw>script|style)\b[^>]*(?:>|\Z).*?(?:</(?P=raw)[^>]*(?:>|\Z)|\Z)"
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
}
"""Open elements that the start of another one ends."""
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
            pieces.append(nest.close(name) or line)
        else:
            pieces.append(nest.closed_by(name))
            unseen = left_out(name, found["rest"])
            deepest = _LEFT_OUT_DEPTH if unseen else depth if name in _SHAPING else 0
            kept = nest.depth < deepest
            # Inside of what is left out every element counts, so that the right end ends it.
            if unseen or nest.unseen or name in _SHAPING:
                nest.open(name, kept, unseen and kept)
            pieces.append(found[0] if kept else line)
    pieces.append(source[at:])
    return "".join(pieces)


class _Nest:
    """The elements that are open, each with whether its tags are written; `depth` of those are,
    `unseen` of them are left out."""

    def __init__(self) -> None:
        self.depth = 0
        self.unseen = 0
        self._open: list[tuple[str, bool, bool]] = []
        self._names: Counter[str] = Counter()

    def open(self, name: str, kept: bool, unseen: bool) -> None:
        self._open.append((name, kept, unseen))
        self._names[name] += 1
        self.depth += kept
        self.unseen += unseen

    def close(self, name: str) -> str:
        """Ends the last `name` and what is open in it; gives the tags that say so."""
        ends = ""
        while self._names[name]:
            last, kept, unseen = self._open.pop()
            self._names[last] -= 1
            self.depth -= kept
            self.unseen -= unseen
            ends += f"</{last}>" if kept else ""
            if last == name:
                break
        return ends

    def closed_by(self, name: str) -> str:
        """Ends what the start of `name` ends."""
        ended = _CLOSED_BY.get(name, frozenset[str]())
        ends = ""
        while self._open and self._open[-1][0] in ended:
            ends += self.close(self._open[-1][0])
        return ends
