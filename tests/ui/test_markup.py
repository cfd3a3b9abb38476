from __future__ import annotations

import html
from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st

from ui.markup import button, esc


class Tags(HTMLParser):
    """Collects what a browser would make elements of."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data


@settings(deadline=None)
@given(st.text())
def test_escaped_text_makes_no_element_and_reads_the_same(said: str) -> None:
    escaped = esc(said)
    assert not set(escaped) & set("<>\"'{$`")
    kept = "".join(c for c in said if c in "\t\n\r" or ord(c) >= 32 and ord(c) != 127)
    assert html.unescape(escaped) == kept


@settings(deadline=None)
@given(st.text(min_size=1), st.text())
def test_button_holds_its_data_whatever_it_is(label: str, value: str) -> None:
    parser = Tags()
    parser.feed(button(label, "act", title=value or "t", id=value))
    parser.close()
    assert [tag for tag, _ in parser.tags] == ["button"]
    assert set(parser.tags[0][1]) == {"type", "class", "data-act", "data-id", "aria-label", "title"}
