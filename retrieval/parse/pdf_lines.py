"""A line of a PDF page and the column that it stands in: what the layout modules hand around."""

from __future__ import annotations

from dataclasses import dataclass, field

from retrieval.parse.pdf_chars import Char


@dataclass(slots=True)
class Region:
    """A column, or the whole page: the outermost edges of its lines, in points."""

    left: float = 1e9
    right: float = -1e9

    def add(self, line: Line) -> None:
        self.left = min(self.left, line.x0)
        self.right = max(self.right, line.x1)


@dataclass(slots=True)
class Line:
    """A piece of text on one baseline without wide gaps. Boxes in points, origin top left.

    `row` is shared by the pieces that PDFium put on one line; `turn` as in Run. `cells` counts the
    pieces that were joined over wide gaps; `beside` says that another line stands next to it, as in
    a table; `opens` that it never goes on with what was read before, as the first line of a cell.
    """

    chars: list[Char]
    x0: float
    y0: float
    x1: float
    y1: float
    row: int
    turn: int = 0
    cells: int = 1
    region: Region = field(default_factory=Region)
    beside: bool = False
    opens: bool = False

    @property
    def size(self) -> float:
        return self.y1 - self.y0

    @property
    def text(self) -> str:
        return "".join(char.text for char in self.chars)
