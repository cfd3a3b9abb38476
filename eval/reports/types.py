"""Values that travel through a report: tables, charts, failures. Plain text only: whoever writes
them out escapes them. Knows neither HTML nor Markdown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """One value as it is printed. `interval` is its 95% interval; `best` marks a value that is
    better than every other one of its row beyond chance."""

    value: str
    interval: str = ""
    best: bool = False
    note: str = ""


EMPTY = Cell("–")
"""Where a measure does not apply."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table: what it states and one cell per column."""

    label: str
    cells: tuple[Cell, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """`corner` heads the labels, `columns` the cells; `notes` stand below, `warnings` above.
    `words`: its cells are words, not figures."""

    title: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    intro: str = ""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    words: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """One plot. `svg` is our own markup: it holds no text of documents, questions or run names."""

    title: str
    caption: str
    svg: str


@dataclass(frozen=True, slots=True)
class Key:
    """A line of the legend that all charts share: letter and colour of a run."""

    letter: str
    name: str
    colour: int


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Samples of one run that ended without a score for the same reason."""

    run: str
    status: str
    reason: str
    count: int
    qids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorstSample:
    """One of the samples that a run did worst on."""

    qid: str
    why: str
    question: str
    gold: tuple[str, ...]
    shown: str
    cited: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorstOfRun:
    """The worst samples of one run, worst first. `rule` says what "worst" means."""

    run: str
    samples: tuple[WorstSample, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the rule that picks the default: what was asked, and each candidate's value."""

    rule: str
    lines: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which mode is the default, and the label of the run that shows it. Both are empty when the
    runs can't decide it."""

    sentence: str
    mode: str
    run: str
    rule: tuple[str, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a report states, in reading order."""

    title: str
    made: str
    verdict: Verdict | None
    runs: Table | None
    tables: tuple[Table, ...]
    keys: tuple[Key, ...]
    charts: tuple[Chart, ...]
    bench_tables: tuple[Table, ...]
    bench_charts: tuple[Chart, ...]
    failures: tuple[FailureGroup, ...]
    worst: tuple[WorstOfRun, ...]
