"""Reads Markdown as a reader sees it: marks and links gone, numbers of ordered lists kept. Knows
nothing of pages; raw HTML inside is reduced to its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrieval.parse.cleaning import clean_text
from retrieval.parse.decode import decode
from retrieval.parse.html_reader import html_text
from retrieval.parse.joining import unwrap
from retrieval.parse.source import Source, plain_markdown

if TYPE_CHECKING:
    from markdown_it.token import Token


def read_markdown(data: bytes, name: str) -> tuple[str, str, Source]:
    """Text, encoding and second count of a Markdown file. Raises Undecodable."""
    raw, encoding = decode(data, name)
    cleaned = clean_text(raw).replace("\f", "\n")
    return markdown_text(cleaned), encoding, Source(plain_markdown(cleaned))


def markdown_text(source: str) -> str:
    """The visible text: one block a line, table cells joined by " | "."""
    from markdown_it import MarkdownIt

    tokens = (
        MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(_without_front(source))
    )
    return _Writer(tokens).text()


def _without_front(source: str) -> str:
    """Drops a YAML header, which no reader of the page sees."""
    if source.startswith("---\n"):
        _, found, rest = source[4:].partition("\n---\n")
        if found:
            return rest
    return source


class _Writer:
    """Walks the flat token list once."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._lines: list[str] = []
        self._prefix = ""
        self._row: list[str] = []
        self._in_row = False

    def text(self) -> str:
        numbers = _list_numbers(self._tokens)
        for index, token in enumerate(self._tokens):
            match token.type:
                case "list_item_open":
                    # A list inside a list item: both marks go on the first line of text.
                    self._prefix += numbers.get(index, "- ")
                case "tr_open":
                    self._in_row, self._row = True, []
                case "tr_close":
                    self._in_row = False
                    self._put(" | ".join(self._row))
                case "inline" if self._in_row:
                    self._row.append(_inline(token).replace("\n", " "))
                case "inline":
                    self._put(_inline(token))
                case "fence" | "code_block":
                    self._put(token.content.rstrip("\n"))
                case "html_block":
                    self._put(html_text(token.content))
        return "\n".join(self._lines)

    def _put(self, text: str) -> None:
        if text.strip():
            self._lines.append(self._prefix + text)
            self._prefix = ""


def _list_numbers(tokens: list[Token]) -> dict[int, str]:
    """ "3. " for the token index of each ordered list item.

    The file's own numbers count, since clauses are cited by them; only a list written 1. 1. 1. is
    counted up as browsers do.
    """
    found: dict[int, str] = {}
    open_lists: list[tuple[bool, list[tuple[int, str, str]]]] = []
    for index, token in enumerate(tokens):
        if token.type in ("ordered_list_open", "bullet_list_open"):
            open_lists.append((token.type == "ordered_list_open", []))
        elif token.type == "list_item_open" and open_lists[-1][0]:
            open_lists[-1][1].append((index, token.info, token.markup))
        elif token.type in ("ordered_list_close", "bullet_list_close"):
            _, items = open_lists.pop()
            lazy = len(items) > 1 and len({info for _, info, _ in items}) == 1
            for position, (item, info, mark) in enumerate(items):
                number = str(int(info) + position) if lazy else info
                found[item] = f"{number}{mark} "
    return found


def _inline(token: Token) -> str:
    pieces: list[str] = []
    for child in token.children or ():
        match child.type:
            case "text" | "code_inline":
                pieces.append(child.content)
            case "softbreak":
                pieces.append("\n")
            case "hardbreak":
                # A form feed can't occur in the source any more; it marks a wanted line break.
                pieces.append("\f")
            case "image":
                pieces.append(child.content)
            case "html_inline" if child.content.lower().startswith("<br"):
                pieces.append("\f")
    paragraphs = "".join(pieces).split("\f")
    return "\n".join(unwrap(part.split("\n")) for part in paragraphs)
