"""Formats of the pages in the engine: what a question sees does not depend on when, where and in
which groups its blocks were read, and formats never meet."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.types import DocumentTokens, Request, SamplingParams
from kvstore.formats import FORMATS, FormatName
from retrieval.parse import parse_file

SAMPLES = Path(__file__).parents[2] / "samples"
PACKED = tuple(name for name in FORMATS if name not in ("auto", "bf16", "fp16"))
BLOCK = 128

_RANDOM = torch.Generator().manual_seed(23)
TOKENS: tuple[int, ...] = tuple(torch.randint(3, 500, (900,), generator=_RANDOM).tolist())
SINKS = tuple(range(10, 31))
QUESTION = tuple(range(40, 60))
ANSWER = SamplingParams(max_tokens=12, ignore_eos=True, logprobs=5)
REQUEST = Request("q", QUESTION, ANSWER, "d", ((700, 790), (300, 340), (10, 90)))

Step = tuple[int | None, float | None, tuple[tuple[int, float], ...]]


@contextmanager
def opened(
    model: Path, form: FormatName, folder: Path | None, **changes: object
) -> Iterator[Engine]:
    config = EngineConfig(
        model=model, precision="float32", block_tokens=BLOCK, kv_budget=8 << 20, kv_format=form,
        disk_folder=folder, disk_budget=256 << 20,
    )  # fmt: skip
    engine = Engine.open(dataclasses.replace(config, **changes))  # type: ignore[arg-type]
    try:
        yield engine
    finally:
        engine.close()


def document(
    engine: Engine, tokens: tuple[int, ...] = TOKENS, *, chained: bool = False
) -> DocumentTokens:
    blocks = engine.split_blocks(len(tokens))
    anchors = tuple((first, first + 1) for first, _ in blocks) if chained else ()
    return DocumentTokens("d", tokens, blocks, anchors=anchors, sinks=SINKS, owner="o")


def ask(engine: Engine, request: Request = REQUEST) -> tuple[list[Step], int]:
    """The steps of the answer, and the document tokens that were read for it."""
    events = list(engine.generate(request))
    usage = events[-1].usage
    assert usage is not None and not events[-1].error, events[-1]
    return [(event.token_id, event.logprob, event.best) for event in events], usage.read_tokens


def settled(engine: Engine) -> None:
    engine.score(QUESTION[:1], QUESTION[1:])
    end = time.monotonic() + 20
    while engine._store._unsaved:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert engine._store.disk is not None and engine._store.disk.settle()
    engine._mail.call(engine._store.check_integrity)


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_a_hit_is_a_miss_to_the_last_bit(
    tiny_llama: Path, tmp_path: Path, form: FormatName, chained: bool
) -> None:
    reading = "chained" if chained else "independent"
    with opened(tiny_llama, form, None, reading=reading) as engine:
        engine.read(document(engine, chained=chained), lazy=True)
        cold, read = ask(engine)
        assert read >= 4 * BLOCK
    with opened(tiny_llama, form, None, reading=reading, read_tokens=4 * BLOCK) as engine:
        # In groups: the rounding of a product over more rows may differ, what is seen may not.
        engine.read(document(engine, chained=chained)).wait(60)
        group, _ = ask(engine)
    with opened(tiny_llama, form, tmp_path, reading=reading) as engine:
        engine.read(document(engine, chained=chained)).wait(60)
        memory, read = ask(engine)
        assert read == 0
        settled(engine)
        counters = engine.counters.disk
        assert counters is not None
        assert counters.bytes_written == 15 * engine.kv_page_bytes
    with opened(tiny_llama, form, tmp_path, reading=reading) as engine:
        engine.read(document(engine, chained=chained)).wait(60)
        disk, read = ask(engine)
        assert (read, engine.counters.read_tokens) == (0, 0)
    assert cold == memory == disk
    assert [token for token, _, _ in group] == [token for token, _, _ in cold]


def test_eviction_between_two_questions_changes_nothing(tiny_llama: Path) -> None:
    for form in PACKED:
        with opened(tiny_llama, form, None) as engine:
            pages = 12 * engine.kv_page_bytes
        with opened(tiny_llama, form, None, kv_budget=pages) as engine:
            engine.read(document(engine), lazy=True)
            first, _ = ask(engine)
            # Only half the document fits: these push out what the first question had read.
            other = dataclasses.replace(REQUEST, evidence=((130, 250), (400, 640), (800, 890)))
            ask(engine, other)
            assert engine.counters.evicted > 0
            again, read = ask(engine)
            assert read > 0
            assert again == first


def test_formats_are_not_each_others(tiny_llama: Path, tmp_path: Path) -> None:
    for form in FORMATS:
        with opened(tiny_llama, form, tmp_path) as engine:
            assert engine.read(document(engine)).wait(60).computed_tokens == len(TOKENS)
            settled(engine)
    for form in FORMATS:
        with opened(tiny_llama, form, tmp_path) as engine:
            assert engine.read(document(engine)).wait(60).computed_tokens == 0


def test_smaller_formats_hold_more_pages_and_answer_a_little_otherwise(tiny_llama: Path) -> None:
    pages, scores = {}, {}
    for form in FORMATS:
        with opened(tiny_llama, form, None) as engine:
            engine.read(document(engine), lazy=True)
            pages[form] = engine.counters.pages_total
            scores[form] = torch.tensor(
                engine.score(QUESTION, TOKENS[320:350], document_key="d", evidence=((10, 500),))
            )
    assert pages["auto"] < pages["bf16"] < pages["int8"] < pages["int4"]
    exact = scores["auto"]
    off = {form: (scores[form] - exact).abs().mean().item() for form in FORMATS}
    assert 0 < off["fp16"] < off["bf16"] < off["int8"] < off["fp8_token_head"] < off["int4"] < 1


def test_sinks_question_and_answer_are_kept_as_computed(tiny_llama: Path) -> None:
    """Without evidence no format has a part in the answer."""
    answers = []
    for form in FORMATS:
        with opened(tiny_llama, form, None) as engine:
            engine.read(document(engine))
            answers.append(ask(engine, dataclasses.replace(REQUEST, evidence=()))[0])
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.model
@pytest.mark.parametrize("form", PACKED)
def test_the_default_model_answers_alike_cold_from_memory_and_from_disk(
    default_model: Path, tmp_path: Path, form: FormatName
) -> None:
    text = (parse_file(next(SAMPLES.glob("*en*.pdf")), "contract.pdf").text)[:6000]
    settings = {"precision": "auto", "block_tokens": 512, "kv_budget": 256 << 20}
    answers = []
    for turns in (("cold", "memory"), ("disk",)):
        with opened(default_model, form, tmp_path, **settings) as engine:
            given = document(engine, tuple(engine.tokenizer.encode(text)))
            engine.read(given, lazy=True)
            question = tuple(engine.tokenizer.encode("\nWhat is the purchase price? It is"))
            request = dataclasses.replace(
                REQUEST, prompt_ids=question, evidence=((900, 1000), (40, 300))
            )
            for turn in turns:
                steps, read = ask(engine, request)
                assert read == (1024 if turn == "cold" else 0)
                answers.append(steps)
            settled(engine)
    assert answers[0] == answers[1] == answers[2]
