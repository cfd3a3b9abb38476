"""HTML with elements left open, or nested deeper than the parser goes, is read to its end."""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path

import pytest

from retrieval.parse import parse_file
from retrieval.parse.html_reader import html_text

TAIL = "<p>The Seller indemnifies the Buyer.</p><p>It is governed by Swiss law.</p>"
LEFT_OPEN = [
    "<p><font size=2>Delivery of goods.",
    "<div>Delivery of goods.",
    "<span>Delivery of goods. ",
    "<p><b>Delivery of goods.</p>",
    "<dl><dd>Delivery of goods.",
    "<ul><li>Delivery of goods.",
    "<ol><li>Delivery of goods.",
    "<center>Delivery of goods.",
    "<blockquote>Delivery of goods.",
    "<table><tr><td>Delivery of goods.",
    "<table><tr><td><ul><li>Delivery of goods.</ul>",
    "<ul><li><table><tr><td>Delivery of goods.</ul>",
    "<section><i>Delivery of goods.",
    "<br><font face=arial>Delivery of goods.",
    "<x-unknown>Delivery of goods. ",
]


@pytest.mark.parametrize("count", [200, 300, 3000])
@pytest.mark.parametrize("opened", LEFT_OPEN)
def test_elements_left_open_lose_nothing(opened: str, count: int) -> None:
    text = html_text(f"<html><body><p>Start.</p>{opened * count}{TAIL}</body></html>")
    assert text.startswith("Start.")
    assert text.count("Delivery of goods.") == count
    assert text.replace(" | ", "\n").endswith(
        "The Seller indemnifies the Buyer.\nIt is governed by Swiss law."
    )


@pytest.mark.parametrize(
    "tag", ["div", "blockquote", "font", "li", "td", "ol", "table", "fieldset"]
)
@pytest.mark.parametrize("depth", [300, 5000])
def test_what_is_deep_and_what_follows_is_read(tag: str, depth: int) -> None:
    deep = f"<{tag}>" * depth + "<p>Deep inside.</p>" + f"</{tag}>" * depth
    text = html_text(f"<html><body><p>Start.</p>{deep}{TAIL}</body></html>")
    assert text.startswith("Start.")
    assert "Deep inside." in text
    assert text.replace(" | ", "\n").endswith(
        "The Seller indemnifies the Buyer.\nIt is governed by Swiss law."
    )


def test_tables_and_lists_after_fonts_left_open_keep_their_form() -> None:
    table = "<table><tr><td>Item<td>Price<tr><td>Coil<td>5</table>"
    source = "<p><font>Words.</p>" * 400 + table + "<ol start=3><li>third</ol>"
    assert html_text(source).split("\n")[400:] == ["Item | Price", "Coil | 5", "3. third"]


def test_hidden_text_of_a_deep_page_stays_hidden() -> None:
    hidden: list[str] = []
    inner = "<span><div>Secret.</div>" * 150
    source = "<div>" * 300 + f"Shown. <div style='display:none'>{inner}</div></div>" + TAIL
    text = html_text("<script>if (a<b) evil()</script>" + source, hidden)
    assert text.split("\n") == ["Shown.", "The Seller indemnifies the Buyer.",
                                "It is governed by Swiss law."]  # fmt: skip
    assert "".join(hidden).count("Secret.") >= 150


@pytest.mark.parametrize(
    ("inner", "shown"),
    [
        (
            "<p style='display:none'>Secret.<p>The price is EUR 5.<p>More",
            "The price is EUR 5.\nMore",
        ),
        ("A<div>B<p hidden>Secret.</div>Shown.", "A\nB\nShown."),
        ("<p hidden>Secret.<div>Shown.</div>", "Shown."),
        ("<p hidden>Secret.<ul><li>Shown.</ul>", "- Shown."),
        ("<div><ul><li hidden>Secret.</div>Shown.", "Shown."),
        ("<div><span hidden>Secret.</div>Shown.", "Shown."),
        ("<dl><dt hidden>Secret.<dd>Shown.</dl>", "Shown."),
        ("<option hidden>Secret.<option>Shown.</option>", "Shown."),
        ("<span style='display:none'>Secret.<p>Secret.</p></span>Shown.", "Shown."),
        ("<div hidden>Secret.</span><p>Secret.</p>Secret.</div>Shown.", "Shown."),
        ("<b><table><tr><td hidden>Secret.</b>Secret.<td>Shown.</table>", "Shown."),
        ("<textarea>a<b</textarea>Shown.", "Shown."),
        ("<span hidden/>Shown.<a href=x/>link</a>", "Shown.link"),
    ],
)
@pytest.mark.parametrize("depth", [3, 300])
def test_what_is_left_open_hides_no_more_in_a_deep_page(inner: str, shown: str, depth: int) -> None:
    text = html_text("<div>" * depth + inner + "</div>" * depth + "<p>After.</p>")
    assert text == f"{shown}\nAfter."


@pytest.mark.parametrize("title", ["<title>Lease <draft</title>", "<title/>"])
def test_a_title_hides_no_part_of_a_deep_page(title: str) -> None:
    body = "<div>" * 300 + "Body." + "</div>" * 300
    assert html_text(f"<html><head>{title}</head><body>{body}</body></html>") == "Body."


@pytest.mark.parametrize("tag", ["div", "td", "ul", "svg", "b"])
def test_a_monstrous_depth_is_read_in_linear_work(tag: str) -> None:
    """300,000 tags; a loop over all open elements for each would take hours."""
    source = f"<{tag}>" * 100_000 + f"</x></{tag}>" * 100_000 + TAIL
    text = html_text("<p>Start.</p>" + source)
    assert text.startswith("Start.")
    assert text.endswith("It is governed by Swiss law.")


def test_text_beyond_ten_megabytes_is_read() -> None:
    assert html_text("<pre>" + "word " * 2_100_000 + "</pre>" + TAIL).endswith("Swiss law.")


def test_a_deep_mail_is_read_to_its_end(tmp_path: Path) -> None:
    message = EmailMessage()
    message["From"] = "a@example.com"
    quoted = "<blockquote>Earlier words." * 300 + "</blockquote>" * 300
    message.set_content(f"<html><body>{quoted}{TAIL}</body></html>", subtype="html")
    (tmp_path / "mail").write_bytes(bytes(message))
    document = parse_file(tmp_path / "mail", "mail.eml")
    assert document.text.count("Earlier words.") == 300
    assert document.text.endswith("It is governed by Swiss law.")


def test_words_beside_the_cells_of_a_table_are_read() -> None:
    source = (
        "<table>Before.<p>Between.</p><form><tr><form><td>a<td>b</form></tr></form>"
        "<tbody style='display:none'><tr><td>Secret</tbody><tr>beside<td>c</tr></table>"
    )
    hidden: list[str] = []
    text = html_text(source, hidden)
    assert text.split("\n") == ["Before.", "Between.", "a | b", "beside | c"]
    assert hidden == ["Secret"]


def test_words_beside_the_items_of_a_list_are_read() -> None:
    assert html_text("<ol>Before.<li>a</li>Between.<li>b</ol>").split("\n") == [
        "Before.",
        "1. a",
        "Between.",
        "2. b",
    ]


def test_lines_in_preformatted_text_are_kept_apart() -> None:
    assert html_text("<pre>one<br>two<p>three</p>four\nfive <b>six</b></pre>").split("\n") == [
        "one",
        "two",
        "three",
        "four",
        "five six",
    ]


@pytest.mark.parametrize(
    "inner",
    [
        "<div hidden>Fee: 999</div>",
        "<span style='display:none'>Fee: <b>999</b></span>",
        "<script>fee = 999</script>",
        "<style>p {width: 999px}</style>",
        "<select><option>EUR 999<option>EUR 999</select>",
        "<textarea>999</textarea>",
    ],
)
def test_what_is_not_shown_in_preformatted_text_is_not_read(inner: str) -> None:
    hidden: list[str] = []
    text = html_text(f"<pre>Fee: 100{inner} EUR\n<b>End</b></pre>Tail", hidden)
    assert text.split("\n") == ["Fee: 100 EUR", "End", "Tail"]
    assert hidden == (["Fee: 999"] if "Fee" in inner else [])


@pytest.mark.parametrize("part", ["tbody", "thead", "tfoot"])
def test_a_caption_in_a_part_of_a_table_is_read(part: str) -> None:
    source = f"<table><{part}><caption>Prices</caption><tr><td>Coil<td>5</{part}></table>Tail"
    assert html_text(source).split("\n") == ["Prices", "Coil | 5", "Tail"]
