"""Tables for people. Every column says whether its figures are cold or warm, never both."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import cast

from rich.console import Console
from rich.table import Table

from eval.benchmarks.lengths import show_length

Rows = Sequence[Mapping[str, object]]
WIDTH = 140


def render(*tables: Table) -> str:
    """The tables as text of at most 140 columns."""
    stream = io.StringIO()
    console = Console(file=stream, width=WIDTH)
    for table in tables:
        console.print(table)
    return stream.getvalue()


def make_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Figures to the right, the first column to the left."""
    table = Table(title=title, title_justify="left", min_width=len(title) + 4)
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place == 0 else "right")
    for row in rows:
        table.add_row(*row)
    return table


def show(value: object, digits: int = 0) -> str:
    """A number with separators; nothing measured is a dash."""
    if value is None:
        return "–"
    if isinstance(value, int | float):
        return f"{value:,.{digits}f}"
    return str(value)


def ttft_tables(results: Mapping[str, object]) -> list[Table]:
    """Cold, warm, and dense beside them where it was measured."""
    cold, warm = cast(Rows, results["cold"]), cast(Rows, results["warm"])
    dense, dense_warm = cast(Rows, results["dense_cold"]), cast(Rows, results["dense_warm"])
    ratios = {row["tokens"]: row for row in cast(Rows, results["ratios"])}
    tables = [
        make_table(
            "cold, ms (no KV of the document was there)",
            ["tokens", "ttft_any", "read for it", "ttft_grounded", "tokens/s read"],
            [
                [
                    _length(row),
                    show(row["ttft_any_ms"]),
                    show(row["any_read_tokens"]),
                    show(row["ttft_grounded_ms"]),
                    show(row["read_tokens_per_s"]),
                ]
                for row in cold
            ],
        ),
        make_table(
            "warm, ms (the whole document was read before)",
            ["tokens", "ttft_warm", "dense, ttft_warm"],
            [
                [
                    _length(row),
                    show(row["ttft_warm_ms"]),
                    show(_of(dense_warm, row["tokens"], "ttft_warm_ms")),
                ]
                for row in warm
            ],
        ),
    ]
    if dense:
        tables.append(
            make_table(
                "dense reading, cold, ms (≥: reading alone, the window is too short to ask)",
                ["tokens", "ttft_grounded", "tokens/s read", "times ours", "times our ttft_any"],
                [_dense_row(row, ratios[row["tokens"]]) for row in dense],
            )
        )
    return tables


def decode_tables(results: Mapping[str, object]) -> list[Table]:
    """Time per token, and what was left out."""
    cells, skipped = cast(Rows, results["cells"]), cast(Rows, results["skipped"])
    tables = [
        make_table(
            "decoding (context: mean while timed)",
            ["context from", "wanted", "context", "batch", "decoding", "ms/token", "tokens/s"],
            [
                [
                    str(row["source"]),
                    show_length(cast(int, row["context"])),
                    show(row["mean_context"]),
                    show(row["batch"]),
                    _decoding(row),
                    show(row["ms_per_token"], 1),
                    show(row["tokens_per_s"], 1),
                ]
                for row in cells
            ],
        )
    ]
    if skipped:
        rows = [
            [str(row["source"]), show_length(cast(int, row["context"])), show(row["batch"]),
             str(row["why"])]
            for row in skipped
        ]  # fmt: skip
        tables.append(make_table("not measured", ["context from", "wanted", "batch", "why"], rows))
    return tables


def _decoding(row: Mapping[str, object]) -> str:
    """The engine guesses when it decodes one sequence greedily."""
    if row["decoding"] == "sampled":
        return "sampled, nothing guessed"
    return "greedy, guessing" if row["batch"] == 1 else "greedy, nothing guessed"


def _dense_row(row: Mapping[str, object], ratio: Mapping[str, object]) -> list[str]:
    bound = "≥ " if ratio["lower_bound"] else ""
    return [
        _length(row),
        bound + show(row["ttft_at_least_ms"]),
        show(row["read_tokens_per_s"]),
        bound + show(ratio["dense_to_grounded"], 1),
        bound + show(ratio["dense_to_any"], 1),
    ]


def _length(row: Mapping[str, object]) -> str:
    return show_length(cast(int, row["tokens"]))


def _of(rows: Rows, tokens: object, key: str) -> object:
    return next((row[key] for row in rows if row["tokens"] == tokens), None)
