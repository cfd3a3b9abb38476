"""What `fineprint ask` does: take files in (or find them there), wait until they are read, answer,
and give account."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import typer

from app.answer_run import AnswerRun
from app.answers import AnswerRuns
from app.asker import asker_for
from app.cli.intake import Intake, take_in
from app.cli.reporting import INTERRUPTED, fail, note
from app.errors import NotFound
from app.events import AnswerCompleted, AnswerDelta, AnswerEvent, AnswerFailed
from app.models import resolve
from app.questions import check_question, check_text
from app.services import Services, open_services
from app.settings import Settings
from app.types import Answer

CITATION_FIELDS = (
    "quote",
    "document_id",
    "document",
    "page",
    "page_label",
    "start_char",
    "end_char",
    "clause",
    "boxes",
    "verified",
    "role",
    "replaced",
)
CHECK_FIELDS = ("kind", "text", "ok")
ANSWER_FIELDS = ("answer", "status", "language")


def answer_files(
    settings: Settings, files: Sequence[Path], question: str, *, as_json: bool
) -> Answer:
    """Takes the files in and answers; says the answer on stdout as it comes unless `as_json`.

    Raises NotFound for a file that is not there, BadQuestion, ModelUnavailable and what taking in
    raises; what is wrong with the call itself is found before anything is opened or stored.
    """
    text = check_text(question, settings)
    for path in files:
        if not path.is_file():
            raise NotFound(f"There is no file {path}.", code="file_not_found")
    resolve(settings)
    with open_services(settings) as services:
        started = time.perf_counter()
        intake = take_in(services, files)
        before_ms = (time.perf_counter() - started) * 1000
        answer = _answered(services, intake, text, as_json=as_json)
    return with_intake(answer, intake, before_ms)


def _answered(services: Services, intake: Intake, question: str, *, as_json: bool) -> Answer:
    runs = AnswerRuns(
        services.engine,
        services.library.load,
        services.conversations,
        asker_for(services.settings),
        workers=1,
    )
    with closing(runs):
        run = runs.start(check_question(services, question, intake.document_ids, None))
        for event in events(run):
            if isinstance(event, AnswerDelta) and not as_json:
                typer.echo(event.text, nl=False)
    outcome = run.outcome
    if isinstance(outcome, AnswerCompleted):
        return outcome.answer
    if not isinstance(outcome, AnswerFailed):
        fail(as_json, "interrupted", "The answer was interrupted.", INTERRUPTED)
    fail(as_json, outcome.code, outcome.message)


def events(run: AnswerRun) -> Iterator[AnswerEvent]:
    """The run's events as they come, to the last."""
    news = threading.Event()
    told = 0
    with run.followed(news.set):
        while True:
            news.clear()
            over = run.finished
            for event_id, event in run.events_after(told):
                told = event_id
                yield event
            if over:
                return
            news.wait()


def with_intake(answer: Answer, intake: Intake, before_ms: float) -> Answer:
    """The answer with the account of this whole call: the question came with the files, so their
    reading counts."""
    timings = dataclasses.replace(
        answer.timings,
        parse_ms=intake.parse_ms,
        index_ms=intake.index_ms,
        read_ms=intake.read_ms,
        ttft_ms=answer.timings.ttft_ms + before_ms,
        total_ms=answer.timings.total_ms + before_ms,
    )
    usage = dataclasses.replace(
        answer.usage, read_tokens=answer.usage.read_tokens + intake.read_tokens
    )
    return dataclasses.replace(answer, timings=timings, usage=usage)


def answer_fields(answer: Answer) -> dict[str, object]:
    """What `ask --json` prints; these names don't change."""
    whole = dataclasses.asdict(answer)
    return {
        **{name: whole[name] for name in ANSWER_FIELDS},
        "citations": [
            {name: citation[name] for name in CITATION_FIELDS} for citation in whole["citations"]
        ],
        "checks": [
            {name: check[name] for name in CHECK_FIELDS}
            | ({"operands": check["operands"]} if check["operands"] else {})
            for check in whole["checks"]
        ],
        "coverage": whole["coverage"],
        "timings": {name: round(value, 3) for name, value in whole["timings"].items()},
        "usage": whole["usage"],
    }


def show_account(answer: Answer) -> None:
    """What a person should know besides the answer that was just said."""
    typer.echo()
    for check in answer.checks:
        if not check.ok:
            typer.echo(f"not verified: {check.kind} “{check.text}”")
    for warning in answer.warnings:
        note(f"warning: {warning.message}")
    read, total = answer.coverage.read_tokens, answer.coverage.total_tokens
    note(f"{read:,} of {total:,} tokens read, {answer.timings.total_ms / 1000:.1f} s")
