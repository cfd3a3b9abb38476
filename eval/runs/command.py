"""`fineprint eval run`. Its work is in `eval.runs.running`, loaded when it is needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from app.cli.reporting import (
    FAILURE,
    INTERRUPTED,
    JsonOption,
    ModelOption,
    emit,
    fail,
    note,
    reporting,
)
from eval.types import Mode

_SHOWN = (
    "n", "f1", "em", "rouge_l", "number_accuracy", "unmarked_wrong_figures", "citation_hit",
    "citation_verified", "refusal_accuracy", "false_refusal", "recall_at_1", "recall_at_5",
    "recall_at_10", "mrr", "choice_accuracy", "answer_nll", "failed", "unfit",
)  # fmt: skip


def command(
    more: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help="Further question sets.", show_default=False),
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            "--data",
            help="A question set; a shell pattern after it names several.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the run; default: one under ./eval-runs named by what is measured.",
            show_default=False,
        ),
    ] = None,
    mode: Annotated[str, typer.Option(help="|".join(get_args(Mode)))] = "evidence",
    limit: Annotated[int, typer.Option(min=0, help="Questions to draw; 0 takes all.")] = 0,
    seed: Annotated[int, typer.Option(help="Of the sample and of random evidence.")] = 0,
    only: Annotated[str, typer.Option(help="all|answerable|unanswerable")] = "all",
    min_tokens: Annotated[
        int | None,
        typer.Option(
            min=0,
            show_default=False,
            help="Shortest document; estimated (English 4 characters a token, Chinese 1), so that "
            "every model and mode gets the same questions.",
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=0, help="Longest document, estimated as well.", show_default=False),
    ] = None,
    lang: Annotated[str | None, typer.Option(help="en|zh", show_default=False)] = None,
    form: Annotated[
        str | None,
        typer.Option(help="Form of the question sets; told from content.", show_default=False),
    ] = None,
    switch: Annotated[
        list[str] | None,
        typer.Option(
            "--switch",
            metavar="NAME=VALUE",
            help="Change one thing; may be repeated. A wrong name lists those there are.",
            show_default=False,
        ),
    ] = None,
    model: ModelOption = None,
    device: Annotated[
        str | None, typer.Option(help="auto, cpu or cuda[:n].", show_default=False)
    ] = None,
    endpoint: Annotated[
        str | None, typer.Option(help="Base URL of a peer, with /v1.", show_default=False)
    ] = None,
    peer_model: Annotated[
        str | None, typer.Option(help="The peer's name of its model.", show_default=False)
    ] = None,
    api_key_file: Annotated[
        Path | None, typer.Option(help="File that holds the peer's key.", show_default=False)
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds for one answer of a peer.")
    ] = 300.0,
    restart: Annotated[
        bool, typer.Option("--restart", help="Drop what the folder holds of a former run.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Ask failed questions once more.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask the questions of one or more sets and score the answers.

    A run that was stopped or killed goes on where it was when the same command is given again.
    """
    from app.logs import configure_logging
    from app.settings import load_settings
    from eval.datasets import FORM_NAMES, Form
    from eval.runs.running import RunRequest, run
    from eval.runs.sampling import Only, Wanted
    from retrieval.types import Language

    with reporting(as_json):
        configure_logging(load_settings())
        request = RunRequest(
            data=(*(data or ()), *(more or ())),
            mode=cast(Mode, _one_of("--mode", mode, get_args(Mode))),
            wanted=Wanted(
                limit=limit,
                seed=seed,
                only=cast(Only, _one_of("--only", only, get_args(Only))),
                min_tokens=min_tokens,
                max_tokens=max_tokens,
                lang=cast(Language | None, lang and _one_of("--lang", lang, get_args(Language))),
            ),
            form=cast(Form | None, form and _one_of("--form", form, FORM_NAMES)),
            out=out,
            switches=tuple(switch or ()),
            model=model,
            device=device,
            endpoint=endpoint,
            peer_model=peer_model,
            api_key_file=api_key_file,
            peer_timeout_s=timeout,
            restart=restart,
            retry_failed=retry_failed,
        )
        try:
            summary = run(request, note, bar=False if as_json else None)
        except KeyboardInterrupt:
            fail(
                as_json, "interrupted",
                "Stopped. The records so far are kept; the same command goes on from there.",
                INTERRUPTED,
            )  # fmt: skip
    if as_json:
        emit(summary)
    else:
        _show(summary)
    if summary["n"] and summary["failed"] == summary["n"]:
        note("fineprint: every question failed; the records say why.")
        raise typer.Exit(FAILURE)


def _one_of(option: str, value: str, choices: tuple[str, ...]) -> str:
    from eval.errors import RunError

    if value not in choices:
        raise RunError(f"{option} {value}: choose one of {', '.join(choices)}.")
    return value


def _show(summary: Mapping[str, object]) -> None:
    """The summary as a table, with 95% intervals where there are some."""
    from rich.console import Console
    from rich.table import Table

    table = Table("", str(summary["mode"]), "95%", title=str(summary["run"]), title_justify="left")
    intervals = summary.get("intervals")
    for name in _SHOWN:
        value = summary.get(name)
        if value is None:
            continue
        table.add_row(name, _figure(value), _interval(intervals, name))
    times = summary.get("ttft_ms")
    if isinstance(times, dict):
        for name in ("p50", "p95"):
            if times.get(name) is not None:
                table.add_row(f"ttft_ms {name}", f"{times[name]:.0f}", "")
    Console().print(table)


def _figure(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _interval(intervals: object, name: str) -> str:
    found = intervals.get(name) if isinstance(intervals, dict) else None
    if not isinstance(found, dict) or found.get("low") is None:
        return ""
    return f"{found['low']:.3f} to {found['high']:.3f}"
