"""Values that travel out of retrieval. All offsets are half-open, in Unicode code points of
`Document.text`; all page numbers are physical and start at 1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from retrieval.receipt import Receipt

Language = Literal["en", "zh"]
Box = tuple[float, float, float, float]
"""(x0, y0, x1, y1) as fractions of page width and height, origin top left."""


@dataclass(frozen=True, slots=True)
class DocumentWarning:
    """Something a reader of the answer must know about the document.

    `pages` is empty when the warning concerns the whole document.
    """

    code: str
    message: str
    pages: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """One physical page: `Document.text[start:end]` is its text.

    `label` is the number printed on it (None when the file states none). `method` says where the
    text came from. Formats without pages (TXT, Markdown, HTML, DOCX) have one page with number 1
    unless the file itself states page breaks.
    """

    number: int
    start: int
    end: int
    label: str | None = None
    width: float | None = None
    height: float | None = None
    method: Literal["text", "ocr", "empty", "unreadable"] = "text"


@dataclass(frozen=True, slots=True)
class Document:
    """One parsed file.

    `char_boxes` maps a page number to one Box per character of that page's text (None for
    characters that have no place on the page, such as joined line breaks); empty for formats
    without geometry.
    """

    text: str
    pages: tuple[DocumentPage, ...]
    name: str
    media_type: str
    language: Language
    warnings: tuple[DocumentWarning, ...] = ()
    encoding: str | None = None
    char_boxes: dict[int, tuple[Box | None, ...]] = field(default_factory=dict)
    receipt: Receipt | None = None


@dataclass(frozen=True, slots=True)
class Clause:
    """A numbered unit: `text[start:end]` runs from its number to the start of the next clause of
    the same or a higher level. `parent` is the index of the enclosing clause in the outline."""

    index: int
    number: str
    title: str
    level: int
    start: int
    end: int
    parent: int | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A retrieval unit: `text[start:end]`, at most `max_chars` characters, inside one clause path.

    `heading` is the path of clause headings above it, for display and for indexing; it is not part
    of the span.
    """

    index: int
    start: int
    end: int
    clause: str | None
    heading: str
    page_start: int
    page_end: int


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found for a question. `score` is comparable within one search only; `matched` holds
    the question terms that occur in the chunk."""

    chunk: Chunk
    score: float
    rank: int
    matched: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a chunk, the unit that an answer quotes. `score` orders the sentences of one
    question; `likely` is the calibrated probability that this one answers, None where it is not
    calibrated."""

    start: int
    end: int
    chunk: Chunk
    score: float
    likely: float | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What retrieval found for one question.

    `hits` best first. `sentences` best first, the candidates for the quoted answer. `support` in
    [0, 1]: how well the evidence covers what the question asks for; `answerable` is `support`
    against the calibrated threshold. `reason` says in words why it is not answerable; `absent`
    names the things that the question names exactly and the document never speaks of.
    """

    question: str
    language: Language
    hits: tuple[Hit, ...]
    sentences: tuple[Sentence, ...]
    support: float
    answerable: bool
    reason: str = ""
    absent: tuple[str, ...] = ()
