"""A report as Markdown with GitHub's tables, without the plots.

Names, reasons and questions are hostile data: `escaped` keeps them text, on one line, inside their
cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from eval.reports.types import Cell, Report, Table

_ESCAPED = re.compile(r"([\\`*_\[\]#|~$@])")


def markdown_page(report: Report) -> str:
    """The whole file."""
    return "\n".join(_lines(report)) + "\n"


def escaped(text: str) -> str:
    """Text as GitHub's Markdown shows it unchanged: no markup, link, mention, HTML or new cell.
    White space is folded, control characters are dropped."""
    folded = " ".join(text.split())
    folded = "".join(character for character in folded if character.isprintable())
    folded = folded.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    folded = _ESCAPED.sub(r"\\\1", folded)
    # GitHub makes links of bare addresses too.
    folded = re.sub(r"(?i)\b(www)\.", r"\1\\.", folded.replace("://", r"\://"))
    # A list, a rule or a numbered item would start here.
    return re.sub(r"^(\d*)([-=+.)])(?=\s|[-=]|$)", r"\1\\\2", folded)


def _lines(report: Report) -> Iterator[str]:
    yield f"# {escaped(report.title)}"
    yield ""
    yield escaped(report.made)
    if report.verdict:
        yield from ("", "## Which mode is the default", "", escaped(report.verdict.sentence), "")
        yield from (
            f"{place}. {escaped(rule)}" for place, rule in enumerate(report.verdict.rule, 1)
        )
        for step in report.verdict.steps:
            yield from ("", f"**{escaped(step.rule)}**", "")
            yield from (f"- {escaped(line)}" for line in step.lines)
            yield f"- left: {escaped(', '.join(step.left)) or 'none'}"
    for table in (report.runs, *report.tables, *report.bench_tables):
        if table:
            yield from _table(table)
    if report.runs:
        yield from ("", "## Failures", "")
        if not report.failures:
            yield "Every sample of every run was answered and scored."
        for group in report.failures:
            names = ", ".join(group.qids[:5]) + (", …" if len(group.qids) > 5 else "")
            yield (
                f"- {escaped(group.run)}: {group.count} {group.status}: {escaped(group.reason)} "
                f"({escaped(names)})"
            )


def _table(table: Table) -> Iterator[str]:
    yield from ("", f"## {escaped(table.title)}", "")
    if table.intro:
        yield from (escaped(table.intro), "")
    for warning in table.warnings:
        yield from (f"> **Note:** {escaped(warning)}", "")
    yield f"| {escaped(table.corner)} | {' | '.join(map(escaped, table.columns))} |"
    yield "|---|" + "---|" * len(table.columns)
    for row in table.rows:
        label = escaped(row.label) + (f" ({escaped(row.note)})" if row.note else "")
        yield f"| {label} | {' | '.join(map(_cell, row.cells))} |"
    for note in table.notes:
        yield from ("", escaped(note))


def _cell(cell: Cell) -> str:
    shown = f"**{escaped(cell.value)}** ★" if cell.best else escaped(cell.value)
    added = "; ".join(part for part in (cell.interval, cell.note) if part)
    return f"{shown} ({escaped(added)})" if added else shown
