"""Hostile names, reasons and titles stay text in report.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from eval.reports.assembly import assemble
from eval.reports.markdown import escaped, markdown_page
from eval.reports.types import Cell, Report, Row, Table

Make = Callable[..., Any]
GITHUB = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
PROBES = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a | b | c",
    "line one\nline two\r\n| --- |",
    "[click](javascript:alert(1))",
    "![x](https://example.org/x.png)",
    "`code` **bold** _it_ ~~no~~ $x$",
    "# heading",
    "- item",
    "1. item",
    "1) item",
    "> quote",
    "---",
    "===",
    "+ plus",
    "\\| \\\\| \\",
    "&lt;b&gt; &amp;",
    "https://example.org www.example.org a@example.org @someone #12",
    "\u202eevil\u0000\u200b",
    "质保期 | 三年",
]


def shown(markdown: str) -> str:
    """What a reader sees of rendered Markdown, without markup."""
    rendered = GITHUB.render(markdown)
    return unescape(re.sub(r"<[^>]*>", "", rendered))


def plain(text: str) -> str:
    return "".join(c for c in " ".join(text.split()) if c.isprintable()).strip()


@pytest.mark.parametrize("probe", PROBES)
def test_a_probe_stays_text_in_a_cell_and_on_a_line(probe: str) -> None:
    table = f"| a | b |\n|---|---|\n| {escaped(probe)} | end |\n"
    rendered = GITHUB.render(table)
    assert rendered.count("<td>") == 2
    cell = re.search(r"<td>(.*?)</td>", rendered, re.S)
    assert cell is not None and "<" not in cell[1]
    assert unescape(cell[1]).strip() == plain(probe)
    line = GITHUB.render(escaped(probe))
    assert re.fullmatch(r"<p>[^<]*</p>\n", line) and unescape(line[3:-5]).strip() == plain(probe)


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_any_text_stays_text(text: str) -> None:
    line = GITHUB.render(f"x {escaped(text)} x")
    assert "\n" not in escaped(text)
    assert re.fullmatch(r"<p>[^<]*</p>\n", line)
    assert " ".join(unescape(line[3:-5]).split()) == " ".join(f"x {plain(text)} x".split())


def test_addresses_and_mentions_become_no_links() -> None:
    """GitHub links bare addresses and mentions, which the parser above does not."""
    text = escaped("http://a.example www.b.example c@d.example @team")
    assert "://" not in text.replace("\\://", "")
    assert "www." not in text
    assert re.search(r"(?<!\\)@", text) is None


def test_a_hostile_run_breaks_no_table(
    write_run: Make, open_runs: Make, some_records: Make, one_failure: Make
) -> None:
    records = some_records()
    records[3] = one_failure(3, error="ValueError: <img src=x onerror=alert(1)> | a\n| b |")
    entries = open_runs(
        write_run("a|b <script>", records),
        write_run("[x](y)", records, mode="text", switches={"evil": "`|`\n#"}),
    )
    report = assemble(entries, entries[0], title="Report | <b>now</b>")
    text = markdown_page(report)
    rendered = GITHUB.render(text)
    assert "<script" not in rendered and "<img" not in rendered and "<b>" not in rendered
    assert "<a " not in rendered
    assert "A a|b <script>" in shown(text)
    assert "<img src=x onerror=alert(1)> | a | b |" in shown(text)
    widths = [
        {row.count("<td") + row.count("<th") for row in re.findall(r"<tr>(.*?)</tr>", table, re.S)}
        for table in re.findall(r"<table>(.*?)</table>", rendered, re.S)
    ]
    assert widths and all(len(width) == 1 for width in widths)


def test_values_intervals_and_marks_stand_in_their_cells() -> None:
    cells = (Cell("50.0%", "40.0% to 60.0%", True, "n = 9"), Cell("–"))
    table = Table(
        "T", "run", ("A", "B"), (Row("F1 ↑", cells, "n"),), "intro", ("careful",), ("end",)
    )
    report = Report(
        title="R", made="now", verdict=None, runs=None, tables=(table,), keys=(), charts=(),
        bench_tables=(), bench_charts=(), failures=(), worst=(),
    )  # fmt: skip
    assert markdown_page(report).splitlines() == [
        "# R", "", "now", "", "## T", "", "intro", "", "> **Note:** careful", "",
        "| run | A | B |", "|---|---|---|",
        "| F1 ↑ (n) | **50.0%** ★ (40.0% to 60.0%; n = 9) | – |", "", "end",
    ]  # fmt: skip
