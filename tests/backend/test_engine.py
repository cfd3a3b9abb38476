"""The engine on a tiny random model: page lists against dense attention, streams, errors."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from transformers import LlamaForCausalLM

from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.errors import BackendError, EngineClosed, RequestTooLarge, UnknownDocument
from backend.parts import load_parts
from backend.types import DocumentTokens, Request, SamplingParams, TokenEvent

_RANDOM = torch.Generator().manual_seed(5)
TOKENS: tuple[int, ...] = tuple(torch.randint(3, 500, (700,), generator=_RANDOM).tolist())
SINKS = tuple(range(10, 31))
QUESTION = tuple(range(40, 60))
FOUR = SamplingParams(max_tokens=4, ignore_eos=True)


def make_config(model: Path, **changes: object) -> EngineConfig:
    base = EngineConfig(model=model, precision="float32", block_tokens=128, kv_budget=8 << 20)
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def engine(tiny_llama: Path) -> Iterator[Engine]:
    engine = Engine.open(make_config(tiny_llama))
    yield engine
    engine.close()


def document(engine: Engine, key: str, tokens: tuple[int, ...] = TOKENS) -> DocumentTokens:
    return DocumentTokens(key, tokens, engine.split_blocks(len(tokens)), sinks=SINKS)


def text_of(events: list[TokenEvent]) -> list[int]:
    return [event.token_id for event in events if event.token_id is not None]


def test_all_pages_of_one_block_equal_dense_attention(tiny_llama: Path) -> None:
    model = LlamaForCausalLM.from_pretrained(tiny_llama).eval()
    whole = (*SINKS, *TOKENS, *QUESTION)
    with torch.inference_mode():
        logits = model(torch.tensor(whole)[None]).logits[0].log_softmax(-1)
    expected = [float(logits[i, whole[i + 1]]) for i in range(len(whole) - 20, len(whole) - 1)]
    engine = Engine.open(make_config(tiny_llama, block_tokens=768))
    try:
        engine.read(document(engine, "d")).wait(60)
        scores = engine.score(
            QUESTION[:1], QUESTION[1:], document_key="d", evidence=((0, len(TOKENS)),)
        )
    finally:
        engine.close()
    torch.testing.assert_close(torch.tensor(scores), torch.tensor(expected), atol=1e-3, rtol=0)


def test_second_question_reads_nothing(engine: Engine) -> None:
    engine.read(document(engine, "twice")).wait(60)
    request = Request("q1", QUESTION, FOUR, "twice", ((600, 660), (100, 140)))
    first = list(engine.generate(request))
    second = list(engine.generate(dataclasses.replace(request, request_id="q2")))
    assert text_of(first) == text_of(second)
    assert len(text_of(first)) == 4
    for events in (first, second):
        usage = events[-1].usage
        assert usage is not None
        assert usage.read_tokens == 0
        # Pages of 64 from block starts: [576, 700) of the last block and [64, 128) + [128, 192).
        assert usage.cached_tokens == len(SINKS) + 2 * 64 + (640 - 576) + (700 - 640)


def test_asked_before_it_is_read_only_the_evidence_is_read(engine: Engine) -> None:
    tokens = TOKENS[::-1]
    engine.read(document(engine, "lazy", tokens), lazy=True)
    progress = engine.progress("lazy")
    assert progress is not None
    assert (progress.read_tokens, progress.status) == (0, "queued")
    early = list(engine.generate(Request("q", QUESTION, FOUR, "lazy", ((300, 310),))))
    usage = early[-1].usage
    assert usage is not None
    assert usage.read_tokens == 128
    ticket = engine.read(document(engine, "lazy", tokens))
    assert ticket.wait(60).status == "done"
    assert ticket.progress().computed_tokens == len(tokens) - 128
    late = list(engine.generate(Request("q", QUESTION, FOUR, "lazy", ((300, 310),))))
    assert text_of(early) == text_of(late)


def test_same_text_in_another_document_is_not_read_again(engine: Engine) -> None:
    tokens = tuple(reversed(TOKENS[:256]))
    engine.read(document(engine, "one", tokens)).wait(60)
    assert engine.read(document(engine, "two", tokens)).wait(60).computed_tokens == 0
    other = dataclasses.replace(document(engine, "three", tokens), owner="somebody else")
    assert engine.read(other).wait(60).computed_tokens == 256


def test_chained_reading_sees_the_anchors(tiny_llama: Path) -> None:
    engine = Engine.open(make_config(tiny_llama, reading="chained"))
    try:
        plain = document(engine, "plain")
        anchors = tuple(
            (first + 3, first + 90) for first, last in plain.blocks if last - first > 90
        )
        anchors += ((),) * (len(plain.blocks) - len(anchors))
        chained = dataclasses.replace(plain, key="chained", anchors=anchors)
        ask = ((512, 640),)
        scores = []
        for doc in (plain, chained):
            engine.read(doc).wait(60)
            scores.append(
                engine.score(QUESTION[:1], QUESTION[1:], document_key=doc.key, evidence=ask)
            )
        assert engine.progress("chained").computed_tokens == len(TOKENS) - 128  # type: ignore[union-attr]
        assert scores[0] != scores[1]
        lazily = dataclasses.replace(chained, key="lazily", owner="other")
        engine.read(lazily, lazy=True)
        again = engine.score(QUESTION[:1], QUESTION[1:], document_key="lazily", evidence=ask)
        torch.testing.assert_close(torch.tensor(again), torch.tensor(scores[1]))
    finally:
        engine.close()


def test_requests_side_by_side_give_what_they_give_alone(engine: Engine) -> None:
    engine.read(document(engine, "together")).wait(60)
    requests = [
        Request(
            f"r{i}",
            QUESTION[i:],
            SamplingParams(max_tokens=12, temperature=0.9, seed=i, ignore_eos=True),
            "together",
            ((i * 90, i * 90 + 30),),
        )
        for i in range(4)
    ]
    alone = [text_of(list(engine.generate(request))) for request in requests]
    streams = [engine.generate(request) for request in requests]
    assert [text_of(list(stream)) for stream in streams] == alone


def test_who_leaves_a_stream_is_told_what_was_spent(engine: Engine) -> None:
    engine.read(document(engine, "spent")).wait(60)
    long = SamplingParams(max_tokens=2000, ignore_eos=True, temperature=1.0, seed=1)
    stream = engine.generate(Request("s", QUESTION, long, "spent", ((0, 64),)))
    for _ in range(3):
        next(stream)
    stream.close()
    usage, timings = stream.account()
    assert usage.completion_tokens >= 3
    assert usage.cached_tokens == len(SINKS) + 64
    assert usage.prompt_tokens == usage.cached_tokens + len(QUESTION)
    assert timings.ttft_ms >= timings.prefill_ms > 0 and timings.decode_ms > 0


def test_cancel_and_leave(engine: Engine) -> None:
    engine.read(document(engine, "left")).wait(60)
    long = SamplingParams(max_tokens=2000, ignore_eos=True, temperature=1.0, seed=1)
    stream = engine.generate(Request("c", QUESTION, long, "left", ((0, 64),)))
    next(stream)
    engine.cancel("c")
    rest = list(stream)
    assert rest[-1].finish_reason == "cancelled"
    stream = engine.generate(Request("l", QUESTION, long, "left", ((0, 64),)))
    next(stream)
    stream.close()
    after = list(engine.generate(Request("a", QUESTION, FOUR, "left", ((0, 64),))))
    assert after[-1].finish_reason == "length"
    engine.cancel("c")
    engine.cancel("never heard of")


def test_reading_can_be_cancelled_between_blocks(engine: Engine) -> None:
    tokens = tuple(t % 480 + 3 for t in range(1, 1800))
    ticket = engine.read(document(engine, "stopped", tokens))
    ticket.cancel()
    state = ticket.wait(60)
    assert state.status == "cancelled"
    assert state.read_tokens < state.total_tokens


def test_fp8_products_are_for_gpus(tiny_llama: Path) -> None:
    with pytest.raises(BackendError, match="GPUs"):
        Engine.open(make_config(tiny_llama, linear_format="fp8"))


def test_what_cannot_fit_is_refused(engine: Engine, tiny_llama: Path) -> None:
    with pytest.raises(UnknownDocument):
        engine.generate(Request("q", QUESTION, FOUR, "nowhere", ((0, 5),)))
    with pytest.raises(RequestTooLarge, match="4096"):
        engine.generate(Request("q", QUESTION * 300, FOUR))
    with pytest.raises(RequestTooLarge, match="empty"):
        engine.generate(Request("q", (), FOUR))
    engine.read(document(engine, "small", TOKENS[:100])).wait(60)
    with pytest.raises(RequestTooLarge, match="100 tokens"):
        engine.generate(Request("q", QUESTION, FOUR, "small", ((90, 101),)))
    page = 3 * 2 * 2 * 64 * 10 * 4
    tiny = Engine.open(make_config(tiny_llama, kv_budget=4 * page))
    try:
        with pytest.raises(RequestTooLarge, match="KV budget"):
            tiny.read(document(tiny, "big"))
        # Its evidence fits all the same, and two far parts that don't fit at once say so.
        tiny.read(document(tiny, "big"), lazy=True)
        fits = list(tiny.generate(Request("q", QUESTION, FOUR, "big", ((500, 510), (10, 20)))))
        assert fits[-1].finish_reason == "length"
        parts = ((10, 20), (200, 210), (500, 510))
        with pytest.raises(RequestTooLarge, match="KV budget"):
            tiny.generate(Request("q", QUESTION, FOUR, "big", parts))
    finally:
        tiny.close()
    with pytest.raises(BackendError, match="less than one block"):
        Engine.open(make_config(tiny_llama, kv_budget=page))


def test_evicted_blocks_are_read_again_with_the_same_answer(tiny_llama: Path) -> None:
    page = 3 * 2 * 2 * 64 * 10 * 4
    engine = Engine.open(make_config(tiny_llama, kv_budget=6 * page))
    try:
        for name, tokens in (("a", TOKENS[:384]), ("b", TOKENS[:384][::-1])):
            engine.read(document(engine, name, tokens), lazy=True)
        requests = [
            Request("q", QUESTION, FOUR, name, ((0, 20), (200, 220)))
            for name in ("a", "b", "a", "b")
        ]
        answers = [list(engine.generate(request)) for request in requests]
        assert text_of(answers[0]) == text_of(answers[2])
        assert text_of(answers[1]) == text_of(answers[3])
        # Four pages a question, six in all: the block that was used least recently went.
        read = [events[-1].usage.read_tokens for events in answers]  # type: ignore[union-attr]
        assert read == [256, 256, 128, 128]
        engine.forget("a")
        engine.forget("b")
        engine.score(QUESTION[:1], QUESTION[1:])
        assert engine._store.pool.free == 6
        engine._store.check_integrity()
    finally:
        engine.close()


def small_engine(model: Path, pages: int) -> Engine:
    return Engine.open(make_config(model, kv_budget=pages * 3 * 2 * 2 * 64 * 10 * 4))


def test_documents_that_do_not_fit_side_by_side_are_each_read_once(tiny_llama: Path) -> None:
    engine = small_engine(tiny_llama, 6)
    try:
        tickets = [
            engine.read(document(engine, name, tokens))
            for name, tokens in (("a", TOKENS[:384]), ("b", TOKENS[:384][::-1]))
        ]
        for ticket in tickets:
            state = ticket.wait(30)
            assert (state.status, state.computed_tokens) == ("done", 384)
        assert sum(ticket.progress().read_tokens for ticket in tickets) == 384
    finally:
        engine.close()


def test_forgetting_one_document_keeps_what_another_shares(engine: Engine) -> None:
    texts = {"v1": TOKENS[300:556], "v2": (*TOKENS[300:428], *TOKENS[:128])}
    old, new = (
        dataclasses.replace(document(engine, name, tokens), owner="versions")
        for name, tokens in texts.items()
    )
    engine.read(old).wait(60)
    assert engine.read(new).wait(60).computed_tokens == 128
    engine.forget("v1")
    engine.score(QUESTION[:1], QUESTION[1:])
    assert engine.progress("v1") is None
    state = engine.progress("v2")
    assert state is not None and state.read_tokens == 256
    engine.forget("v2")
    # Read again before the engine has come to the deletion, which must not end the new reading.
    ticket = engine.read(new)
    end = time.monotonic() + 20
    while ticket.progress().computed_tokens < 256:
        assert time.monotonic() < end, ticket.progress()
        time.sleep(0.01)
    assert ticket.wait(20).status == "done"


def test_a_second_read_leaves_the_first_ticket_alive(engine: Engine) -> None:
    tokens = tuple(t % 470 + 5 for t in range(1, 1500))
    tickets = [engine.read(document(engine, "again", tokens)) for _ in range(2)]
    engine.read(document(engine, "again", tokens), lazy=True).progress()
    tickets[1].cancel()
    assert tickets[0].wait(60).status == "done"


def test_first_blocks_are_read_first(engine: Engine) -> None:
    tokens = tuple(t * 7 % 470 + 5 for t in range(1, 900))
    doc = dataclasses.replace(document(engine, "late", tokens), owner="first")
    ticket = engine.read(doc, first_blocks=(5,))
    while not ticket.progress().read_tokens:
        pass
    assert engine._store.contains(ticket._reading.keys[5])
    assert ticket.wait(60).status == "done"
    with pytest.raises(RequestTooLarge, match="Block 99"):
        engine.read(doc, first_blocks=(99,))


def test_whoever_waits_for_a_reading_is_told_of_the_end(tiny_llama: Path) -> None:
    engine = Engine.open(make_config(tiny_llama))
    tickets = [engine.read(document(engine, name, TOKENS * 4)) for name in ("d", "d", "e")]
    engine.close()
    for ticket in tickets:
        state = ticket.wait(5)
        assert state.status == "done" or "closed" in state.error


def test_a_stream_that_nobody_took_from_is_cancelled(engine: Engine) -> None:
    long = SamplingParams(max_tokens=3000, ignore_eos=True, temperature=1.0, seed=1)
    engine.generate(Request("dropped", QUESTION, long)).close()
    stream = engine.generate(Request("same id", QUESTION, long))
    other = engine.generate(Request("same id", QUESTION, FOUR))
    assert len(list(other)) == 4
    stream.close()
    engine.score(QUESTION[:1], QUESTION[1:])
    assert engine._live == {}
    assert all(sequence.cancelled for sequence in engine._scheduler.sequences())


def test_a_context_that_cannot_be_opened_ends_its_request_alone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("no room for this context")

    with monkeypatch.context() as patch:
        patch.setattr(engine._runner, "open_context", fail)
        events = list(engine.generate(Request("q", QUESTION, FOUR)))
    assert "no room" in events[-1].error
    assert engine.alive
    with pytest.raises(RequestTooLarge, match="at least one must follow"):
        engine.generate(Request("q", QUESTION, FOUR, sink_len=len(QUESTION)))


def test_closed_engine_refuses(tiny_llama: Path) -> None:
    engine = Engine.open(make_config(tiny_llama))
    engine.close()
    engine.close()
    with pytest.raises(EngineClosed):
        engine.generate(Request("q", QUESTION, FOUR))


def test_a_failing_step_ends_its_request_and_not_the_engine(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.read(document(engine, "broken", TOKENS[5:205]), lazy=True)

    def fail(*_: object) -> None:
        raise RuntimeError("out of luck")

    with monkeypatch.context() as patch:
        patch.setattr(engine._runner, "read_block", fail)
        events = list(engine.generate(Request("q", QUESTION, FOUR, "broken", ((0, 20),))))
    assert events[-1].finish_reason == "error"
    assert "out of luck" in events[-1].error
    again = list(engine.generate(Request("q", QUESTION, FOUR, "broken", ((0, 20),))))
    assert again[-1].finish_reason == "length"


def test_a_document_forgotten_while_it_is_made_known_is_not_kept(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgetting = threading.Thread(target=lambda: engine.forget("raced"))
    send = engine._mail.send

    def late(command: Callable[[], None]) -> None:
        if threading.current_thread() is threading.main_thread():
            forgetting.start()
            # Long enough to be done, if nothing holds it back.
            forgetting.join(0.2)
        send(command)

    monkeypatch.setattr(engine._mail, "send", late)
    engine.read(document(engine, "raced", TOKENS[7:]))
    forgetting.join()
    monkeypatch.undo()
    assert engine.progress("raced") is None
    assert "raced" not in engine._mail.call(lambda: set(engine._store.documents))


def test_fp8_layers_share_no_kv_with_dense_ones(tiny_llama: Path) -> None:
    def keys(linear_format: str) -> tuple[bytes, ...]:
        # The layers themselves need a GPU; what is asked here is what their KV is called.
        engine = Engine.open(
            make_config(tiny_llama, linear_format=linear_format),
            lambda config: load_parts(dataclasses.replace(config, linear_format="dense")),
        )
        try:
            engine.read(document(engine, "d"), lazy=True)
            return engine._documents["d"].keys
        finally:
            engine.close()

    assert not set(keys("dense")) & set(keys("fp8"))
