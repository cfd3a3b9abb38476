"""Contexts in pages against contexts of their own, on a tiny random model and on the CPU."""

from __future__ import annotations

import dataclasses
from contextlib import closing
from pathlib import Path

import pytest
import torch

from backend.context import Context
from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.errors import BackendError
from backend.loader import load_checkpoint
from backend.models import Decoder
from backend.paged import step
from backend.paged.arena import Arena, PagedContext
from backend.paged.step import BATCHES, ROWS
from backend.parts import EngineParts, load_parts
from backend.runner import Runner
from backend.types import DocumentTokens, Request, SamplingParams
from kvstore.pool import PagePool
from kvstore.types import KVShape, PageRef, PageTable

_RANDOM = torch.Generator().manual_seed(23)
IDS: list[int] = torch.randint(3, 500, (900,), generator=_RANDOM).tolist()
SINKS = tuple(range(10, 31))
QUESTION = tuple(range(40, 60))


@pytest.fixture(scope="module")
def decoder(tiny_llama: Path) -> Decoder:
    checkpoint = load_checkpoint(tiny_llama)
    return Decoder(checkpoint.config, checkpoint.tensors, "float32", torch.device("cpu"))


def shape_of(decoder: Decoder) -> KVShape:
    config = decoder.config
    return KVShape(config.layers, config.kv_heads, config.head_dim)


def make_arena(decoder: Decoder, pages: int = 40, contexts: int = 8) -> Arena:
    pool = PagePool(shape_of(decoder), pages, torch.float32)
    arena = Arena(pool, contexts=contexts, context_pages=pages)
    # A token that was not written would show.
    arena.pool.data[1:] = float("nan")
    return arena


def make_runner(decoder: Decoder, arena: Arena | None) -> Runner:
    pool = PagePool(shape_of(decoder), 8, torch.float32)
    pool.data.copy_(torch.randn(pool.data.shape, generator=torch.Generator().manual_seed(1)))
    return Runner(decoder, pool, arena)


TABLES = (
    PageTable(()),
    PageTable((PageRef(3, 0, 64), PageRef(1, 0, 37))),
    PageTable((PageRef(5, 0, 64),)),
)


def test_a_step_that_fails_leaves_no_context_longer(
    decoder: Decoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those in pages have their tokens before those outside have none for lack of memory."""
    runner = make_runner(decoder, make_arena(decoder, pages=6))
    contexts = [runner.open_context(SINKS, [], PageTable(()), room) for room in (40, 400)]
    assert [type(context) for context in contexts] == [PagedContext, Context]
    ids = [IDS[:1], IDS[1:2]]
    lengths = [context.length for context in contexts]
    with monkeypatch.context() as patch:

        def fail(*_: object) -> list[torch.Tensor]:
            raise torch.OutOfMemoryError("out of memory")

        patch.setattr(runner, "_extend", fail)
        with pytest.raises(torch.OutOfMemoryError):
            runner.step(contexts, ids)
    assert [context.length for context in contexts] == lengths
    expected = make_runner(decoder, None)
    theirs = [expected.open_context(SINKS, [], PageTable(()), 40) for _ in ids]
    for one, other in zip(runner.step(contexts, ids), expected.step(theirs, ids), strict=True):
        torch.testing.assert_close(one.logits, other.logits, atol=1e-4, rtol=1e-4)


def test_a_step_equals_contexts_of_their_own(decoder: Decoder) -> None:
    plain, paged = make_runner(decoder, None), make_runner(decoder, make_arena(decoder))
    one, many = ([r.open_context(SINKS, [(2, 7)], t, 200) for t in TABLES] for r in (plain, paged))
    assert all(isinstance(context, Context) for context in one)
    assert all(isinstance(context, PagedContext) for context in many)
    steps: list[list[list[int]]] = [
        [IDS[:1], IDS[1:2], IDS[2:3]],
        [IDS[10:13], IDS[13:14], IDS[14:19]],
        [IDS[20:21], IDS[21:22], IDS[22:23]],
    ]
    for ids in steps:
        for last_only in (False, True):
            expected = plain.step(one, ids, last_only=last_only)
            found = paged.step(many, ids, last_only=last_only)
            for theirs, ours in zip(expected, found, strict=True):
                torch.testing.assert_close(ours.logits, theirs.logits, atol=1e-4, rtol=1e-4)
                for row, best in zip(theirs.logits, ours.best, strict=True):
                    assert best is not None
                    assert best[0] == int(row.argmax())
                    assert best[1] == pytest.approx(float(row.log_softmax(0).max()), abs=1e-4)
        for contexts in (one, many):
            contexts[2].take_back(2)
    assert [c.length for c in one] == [c.length for c in many]


def test_long_questions_and_their_scores(decoder: Decoder) -> None:
    plain, paged = make_runner(decoder, None), make_runner(decoder, make_arena(decoder))
    one, other = (r.open_context(SINKS, [], TABLES[1], 700) for r in (plain, paged))
    # More than the largest shape takes, then one that is scored in its last row only.
    for ids in (IDS[:600], IDS[600:640]):
        expected, found = plain.extend([one], [ids])[0], paged.extend([other], [ids])[0]
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    last = IDS[640:680]
    expected = plain.step([one], [last], last_only=True)[0].logits
    found = paged.step([other], [last], last_only=True)[0].logits
    assert found.shape == (1, decoder.config.vocab_size)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_long_and_short_lists_have_shapes_of_their_own(
    decoder: Decoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "SHORT_PAGES", 2)
    plain, paged = make_runner(decoder, None), make_runner(decoder, make_arena(decoder))
    one, other = (r.open_context((), [], TABLES[1], 200) for r in (plain, paged))
    for first in range(0, 120, 40):
        ids = [IDS[first : first + 40]]
        expected = plain.step([one], ids, last_only=True)[0].logits
        found = paged.step([other], ids, last_only=True)[0].logits
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    assert paged._step is not None
    assert [shape[2] for shape in paged._step._shapes] == [40]
    other.take_back(other.length - 30)
    paged.step([other], [IDS[:1]])
    assert [shape[2] for shape in paged._step._shapes] == [40, 2]


def test_more_contexts_than_a_step_takes(decoder: Decoder) -> None:
    count = BATCHES[-1] + 3
    arena = make_arena(decoder, pages=3 * count, contexts=count)
    plain, paged = make_runner(decoder, None), make_runner(decoder, arena)
    one, many = ([r.open_context((), [], TABLES[2], 9) for _ in range(count)]
                 for r in (plain, paged))  # fmt: skip
    ids = [[token] for token in IDS[:count]]
    for theirs, ours in zip(plain.step(one, ids), paged.step(many, ids), strict=True):
        torch.testing.assert_close(ours.logits, theirs.logits, atol=1e-4, rtol=1e-4)


def test_an_arena_without_room_leaves_contexts_of_their_own(decoder: Decoder) -> None:
    arena = make_arena(decoder, pages=7)
    plain, paged = make_runner(decoder, None), make_runner(decoder, arena)
    first = paged.open_context(SINKS, [], TABLES[1], 40)
    second = paged.open_context(SINKS, [], TABLES[2], 300)
    assert isinstance(first, PagedContext)
    assert isinstance(second, Context)
    expected = [plain.open_context(SINKS, [], t, 40) for t in TABLES[1:]]
    for _ in range(2):
        theirs = plain.step(expected, [IDS[:2], IDS[5:7]])
        ours = paged.step([first, second], [IDS[:2], IDS[5:7]])
        for one, other in zip(theirs, ours, strict=True):
            torch.testing.assert_close(other.logits, one.logits, atol=1e-4, rtol=1e-4)
    free = arena.pool.free
    first.close()
    first.close()
    assert arena.pool.free == free + len(first.pages)
    arena.pool.check_integrity()
    assert isinstance(paged.open_context(SINKS, [], TABLES[1], 40), PagedContext)


def test_a_full_context_is_told(decoder: Decoder) -> None:
    runner = make_runner(decoder, make_arena(decoder))
    context = runner.open_context((), [], TABLES[2], 0)
    assert isinstance(context, PagedContext)
    with pytest.raises(BackendError, match="no room"):
        runner.step([context], [IDS[: context.capacity - context.length + 1]])
    with pytest.raises(BackendError, match=f"at most {ROWS[-1]}"):
        runner.step([context], [IDS[: ROWS[-1] + 1]])


def test_an_engine_with_an_arena_answers_as_one_without(tiny_llama: Path) -> None:
    config = EngineConfig(
        model=tiny_llama, precision="float32", block_tokens=128, kv_budget=8 << 20
    )
    arenas: list[Arena] = []

    def load(config: EngineConfig) -> EngineParts:
        parts = load_parts(config)
        arenas.append(make_arena(parts.model))
        return dataclasses.replace(parts, arena=arenas[0])

    answers: list[list[object]] = []
    for loader in (load_parts, load):
        with closing(Engine.open(config, loader)) as engine:
            ids = tuple(IDS[:600])
            document = DocumentTokens("d", ids, engine.split_blocks(600), sinks=SINKS)
            engine.read(document).wait(60)
            requests = [
                Request(f"q{place}", QUESTION[place:], sampling, "d", ((place * 60, 200),))
                for place, sampling in enumerate(
                    (
                        SamplingParams(max_tokens=40),
                        SamplingParams(max_tokens=20, temperature=0.8, seed=3, top_p=0.9),
                        SamplingParams(max_tokens=9, logprobs=2, ignore_eos=True),
                        SamplingParams(max_tokens=9, repetition_penalty=1.3, min_tokens=5),
                    )
                )
            ]
            streams = [engine.generate(request) for request in requests]
            found: list[object] = []
            for stream in streams:
                events = list(stream)
                found.append([event.token_id for event in events])
                found.append([[token for token, _ in event.best] for event in events])
            scores = engine.score(
                QUESTION[:3], QUESTION[3:], document_key="d", evidence=((64, 200),)
            )
            found.append([round(score, 3) for score in scores])
            answers.append(found)
    assert answers[0] == answers[1]
    # All contexts were given back, the scratch page stays.
    assert arenas[0].pool.free == arenas[0].pool.total - 1


def test_requests_wait_for_room_in_the_arena(tiny_llama: Path) -> None:
    config = EngineConfig(
        model=tiny_llama, precision="float32", block_tokens=128, kv_budget=8 << 20
    )
    arenas: list[Arena] = []

    def load(config: EngineConfig) -> EngineParts:
        parts = load_parts(config)
        # Room for one or two of these requests at a time, and never for the last.
        arenas.append(make_arena(parts.model, pages=14))
        return dataclasses.replace(parts, arena=arenas[0])

    opened: list[bool] = []
    with closing(Engine.open(config, load)) as engine:
        runner_open = engine._runner.open_context

        def counting(*args: object, **options: object) -> object:
            context = runner_open(*args, **options)  # type: ignore[arg-type]
            opened.append(isinstance(context, PagedContext))
            return context

        engine._runner.open_context = counting  # type: ignore[method-assign,assignment]
        ids = tuple(IDS[:600])
        engine.read(DocumentTokens("d", ids, engine.split_blocks(600), sinks=SINKS)).wait(60)
        sampling = SamplingParams(max_tokens=24, ignore_eos=True)
        requests = [
            Request(f"q{n}", QUESTION[n:], sampling, "d", ((64 * n, 200),)) for n in range(3)
        ]
        long = SamplingParams(max_tokens=440, ignore_eos=True)
        requests.append(Request("long", QUESTION, long, "d", ((0, 500),)))
        streams = [engine.generate(request) for request in requests]
        counts = [sum(event.token_id is not None for event in stream) for stream in streams]
    assert counts == [24, 24, 24, 440]
    assert opened == [True, True, True, False]
    assert arenas[0].pool.free == arenas[0].pool.total - 1


def test_a_context_that_could_not_be_filled_leaves_its_room(decoder: Decoder) -> None:
    arena = make_arena(decoder)
    shape = shape_of(decoder)
    free = arena.pool.free
    keys = torch.zeros((shape.layers, shape.kv_heads, 70, shape.head_dim))
    for _ in range(20):
        with pytest.raises(RuntimeError):
            arena.open((keys, keys[..., :3]), 100)
    assert arena.pool.free == free
    assert arena.open((keys, keys), 100) is not None
