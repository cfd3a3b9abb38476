"""Modes with an engine, on a tiny random model: every sample ends, contexts are what they say, and
likelihoods are those of the plain prompt."""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.prompt import plan_prompt
from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.errors import BackendError
from backend.types import TokenEvent
from eval.datasets import open_dataset
from eval.errors import RunError
from eval.runs.engine_answers import DenseAnswerer, EngineAnswerer
from eval.runs.folder import load_run
from eval.runs.likelihood import best_choice, gold_answer
from eval.runs.sampling import Wanted
from eval.runs.switches import parse_switches
from eval.types import EvalDocument, Mode, Question, Reply

Maker = Callable[..., Path]
Runner = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def engine(tiny_llama: Path) -> Iterator[Engine]:
    with closing(Engine.open(EngineConfig(model=tiny_llama, block_tokens=64))) as opened:
        yield opened


@pytest.fixture
def document(question_set: Maker) -> EvalDocument:
    return next(iter(open_dataset(question_set(documents=1, filler=8))))


def _reply(
    engine: Engine, mode: Mode, document: EvalDocument, question: Question, *switches: str
) -> Reply:
    chosen = parse_switches(mode, ["max_tokens=8", *switches])
    answerer = (
        DenseAnswerer(engine, chosen)
        if mode == "dense"
        else EngineAnswerer(engine, mode, chosen, seed=0, chunk_chars=1200)
    )
    with answerer.opened(document) as session:
        assert session.doc_tokens == len(engine.tokenizer.encode(document.text))
        return session.reply(question)


def test_the_product_answers_as_it_does_for_a_document_that_was_read(
    engine: Engine, document: EvalDocument
) -> None:
    price, _, insurance = document.questions
    reply = _reply(engine, "evidence", document, price)
    assert reply.status == "answered"
    assert "still" not in reply.shown
    for span in reply.citations:
        assert document.text[span.start : span.end] == span.quote and span.verified
    assert "EUR 1,250.00" in reply.prediction and "[1]" not in reply.prediction
    assert reply.hits and reply.nll is not None and reply.usage.read_tokens > 0
    refused = _reply(engine, "evidence", document, insurance)
    assert refused.status == "not_found" and refused.prediction == "" and refused.nll is None
    assert refused.shown


def test_only_needed_blocks_are_read_and_a_document_is_forgotten(
    engine: Engine, question_set: Maker
) -> None:
    (long,) = open_dataset(question_set("long.jsonl", documents=1, filler=60))
    answerer = EngineAnswerer(
        engine, "evidence", parse_switches("evidence", ["evidence_tokens=128"]), 0, 1200
    )
    with answerer.opened(long) as session:
        first, second = (session.reply(long.questions[0]) for _ in range(2))
        (key,) = engine._documents
        progress = engine.progress(key)
        assert progress is not None and session.doc_tokens is not None
        # Text that the filler repeats is read once, so more may count as read.
        assert 0 < first.usage.read_tokens <= progress.read_tokens
        assert progress.computed_tokens < session.doc_tokens / 2
        assert second.usage.read_tokens == 0
        assert second.shown == first.shown and second.nll == first.nll
    assert not engine._documents


def test_text_is_likened_on_the_material_that_pages_are_made_of(
    engine: Engine, document: EvalDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[dict[str, Any]] = []
    real = engine.score

    def spy(prompt: Any, continuation: Any, **more: Any) -> Any:
        scored.append({"prompt": prompt, **more})
        return real(prompt, continuation, **more)

    monkeypatch.setattr(engine, "score", spy)
    question = document.questions[1]
    pages = ("reinject=nothing", "evidence_tokens=200")
    _reply(engine, "evidence", document, question, *pages)
    _reply(engine, "text", document, question, "evidence_tokens=200")
    by_pages, by_text = scored
    ids = engine.tokenizer.encode(document.text)
    shown = "".join(engine.tokenizer.decode(ids[a:b]) for a, b in by_pages["evidence"])
    prompt = engine.tokenizer.decode(list(by_text["prompt"]))
    assert by_text["document_key"] is None and by_pages["document_key"]
    places = []
    for first, last in by_pages["evidence"]:
        piece = engine.tokenizer.decode(ids[first:last]).strip()
        assert piece in prompt
        places.append(prompt.index(piece))
    assert places == sorted(places) and len(shown) > 100


def test_likelihood_of_the_whole_document(engine: Engine, document: EvalDocument) -> None:
    question = document.questions[0]
    reply = _reply(engine, "dense", document, question)
    plan = plan_prompt(engine.tokenizer, question.question, "en", [document.text])
    scores = engine.score(plan.prompt_ids, engine.tokenizer.encode("EUR 1,250.00"))
    assert reply.nll == pytest.approx(-statistics.fmean(scores))
    assert reply.hits == () and reply.citations == () and reply.usage.completion_tokens > 0
    assert _reply(engine, "dense", document, question, "nll=off").nll is None


def test_evidence_controls(engine: Engine, question_set: Maker) -> None:
    (document,) = open_dataset(question_set(documents=1, filler=40))
    price = document.questions[0]
    (gold,) = price.spans

    def share(reply: Reply) -> int:
        return sum(start < gold[1] and gold[0] < end for start, end in reply.hits)

    known = _reply(engine, "evidence", document, price, "evidence=gold")
    assert share(known) == 1 and known.hits[0][0] <= gold[0] < known.hits[0][1]
    assert known.citations[0].quote == "EUR 1,250.00"
    # A question that retrieval refuses is answered all the same: its place is known.
    odd = dataclasses.replace(price, question="Which insurance cover must the carrier hold?")
    assert _reply(engine, "evidence", document, odd).status == "not_found"
    assert _reply(engine, "evidence", document, odd, "evidence=gold").status == "answered"
    drawn = _reply(engine, "evidence", document, price, "evidence=random")
    again = _reply(engine, "evidence", document, price, "evidence=random")
    assert drawn.hits == again.hits != known.hits and drawn.status == "answered"
    nothing = _reply(engine, "evidence", document, price, "evidence=none", "answer=free")
    assert nothing.hits == () and nothing.usage.read_tokens == 0
    closed_book = plan_prompt(engine.tokenizer, price.question, "en", [])
    scores = engine.score(closed_book.prompt_ids, engine.tokenizer.encode("EUR 1,250.00"))
    assert nothing.nll == pytest.approx(-statistics.fmean(scores))


@pytest.mark.parametrize("mode", ["evidence", "text", "dense"])
def test_free_answers_have_no_quotes(engine: Engine, document: EvalDocument, mode: Mode) -> None:
    reply = _reply(engine, mode, document, document.questions[0], "answer=free")
    assert reply.citations == () and reply.claims == reply.shown
    assert reply.timings.total_ms > 0 and reply.finish_reason
    assert bool(reply.hits) == (mode != "dense")
    # What was computed for this question: blocks, the re-injected text, or all of it.
    read, whole = reply.usage.read_tokens, len(engine.tokenizer.encode(document.text))
    assert read == whole if mode == "dense" else read > 0


def test_the_likeliest_choice_is_taken(engine: Engine, document: EvalDocument) -> None:
    question = Question("q", "Which?", choices=("Price", "Notice period", "x"), answer="b")
    plan = plan_prompt(engine.tokenizer, "Which?", "en", [document.text])
    means = [
        statistics.fmean(engine.score(plan.prompt_ids, engine.tokenizer.encode(words)))
        for words in question.choices
    ]
    best = "ABC"[means.index(max(means))]
    assert best_choice(engine, plan, question) == best
    assert _reply(engine, "dense", document, question, "nll=off").choice == best
    assert gold_answer(question) == "Notice period"


def test_a_likelihood_that_is_no_number_is_an_error(
    engine: Engine, document: EvalDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "score", lambda *_, **__: (-math.inf, -1.0))
    with pytest.raises(BackendError, match="likelihood of inf"):
        _reply(engine, "dense", document, document.questions[0])


def test_what_does_not_fit_is_told_and_counts(
    run_set: Runner, question_set: Maker, tiny_llama: Path, tmp_path: Path
) -> None:
    fits, long = question_set("fits.jsonl", 1), question_set("long.jsonl", 1, filler=200)
    summary = run_set(
        "dense", fits, long, model=str(tiny_llama), device="cpu", switches=("max_tokens=4",)
    )
    assert (summary["n"], summary["unfit"], summary["failed"]) == (6, 3, 0)
    records = load_run(tmp_path / "run").records
    unfit = [record for record in records if record.status == "unfit"]
    assert {record.doc_id for record in unfit} == {"long-0"}
    assert all("the model takes 4096" in record.error for record in unfit)


def test_a_failing_question_ends_and_the_run_goes_on(
    run_set: Runner,
    question_set: Maker,
    tiny_llama: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, calls = Engine.score, []

    def failing(self: Engine, *arguments: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise ValueError("a broken score")
        return real(self, *arguments, **more)

    monkeypatch.setattr(Engine, "score", failing)
    path = question_set(documents=2)
    more = {"model": str(tiny_llama), "device": "cpu", "switches": ("max_tokens=4", "threads=1")}
    summary = run_set("evidence", path, wanted=Wanted(only="answerable"), **more)
    assert (summary["n"], summary["failed"]) == (4, 1)
    (failed,) = (r for r in load_run(tmp_path / "run").records if r.status == "failed")
    assert failed.error == "ValueError: a broken score" and failed.reply is None
    run = load_run(tmp_path / "run")
    assert run.config["engine"]["threads"] == 1 and run.config["resolved"]["max_tokens"] == 4
    again = run_set("evidence", path, wanted=Wanted(only="answerable"), retry_failed=True, **more)
    assert (again["n"], again["failed"]) == (4, 0)


def test_a_dead_engine_ends_the_run(
    run_set: Runner,
    question_set: Maker,
    tiny_llama: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dying(self: Engine, *_: Any, **__: Any) -> Iterator[TokenEvent]:
        self.close()
        raise BackendError("gone")

    monkeypatch.setattr(Engine, "score", dying)
    with pytest.raises(RunError, match="The engine stopped"):
        run_set("evidence", question_set(), model=str(tiny_llama), device="cpu")
    assert len(load_run(tmp_path / "run").records) == 1


def test_chained_reading_gets_its_anchors(
    run_set: Runner, question_set: Maker, tiny_llama: Path
) -> None:
    summary = run_set(
        "evidence", question_set(documents=1, filler=10), model=str(tiny_llama), device="cpu",
        switches=("reading=chained", "block_tokens=128", "max_tokens=4"),
    )  # fmt: skip
    assert summary["failed"] == 0
    config = load_run(Path(str(summary["run"]))).config
    assert config["engine"]["reading"] == "chained"
    assert config["engine"]["anchors_per_block"] == 64
    assert json.dumps(config["switches"]) == json.dumps(
        {"max_tokens": 4, "block_tokens": 128, "reading": "chained"}
    )
