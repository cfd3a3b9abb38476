"""Blocks read together against the same blocks read one by one, on a tiny random model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import torch

from backend.block_group import GroupedBlock
from backend.block_reader import BlockReader
from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.loader import load_checkpoint
from backend.models import Decoder
from backend.reading import DocumentReading
from backend.runner import Runner
from backend.types import DocumentTokens, Request, SamplingParams
from kvstore.errors import PoolExhausted
from kvstore.store import KVStore
from kvstore.types import PAGE_TOKENS, KVShape

_RANDOM = torch.Generator().manual_seed(11)
TOKENS: tuple[int, ...] = tuple(torch.randint(3, 500, (900,), generator=_RANDOM).tolist())
SINKS = tuple(range(10, 31))
QUESTION = tuple(range(40, 60))
FOUR = SamplingParams(max_tokens=4, ignore_eos=True)
BLOCK = 128
LENGTHS = (128, 128, 64, 37, 1, 200)


@pytest.fixture(scope="module")
def decoder(tiny_llama: Path) -> Decoder:
    checkpoint = load_checkpoint(tiny_llama)
    return Decoder(checkpoint.config, checkpoint.tensors, "float32", torch.device("cpu"))


def make_store(decoder: Decoder, pages: int = 32) -> KVStore:
    config = decoder.config
    shape = KVShape(config.layers, config.kv_heads, config.head_dim)
    store = KVStore(shape, pages, torch.float32)
    # A token that was not written would show.
    store.pool.data.fill_(float("nan"))
    return store


def split(lengths: Sequence[int]) -> list[tuple[int, int]]:
    ends = [sum(lengths[: at + 1]) for at in range(len(lengths))]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def make_reading(
    store: KVStore, lengths: Sequence[int], tokens: tuple[int, ...] = TOKENS, *, chained: bool
) -> DocumentReading:
    blocks = tuple(split(lengths))
    anchors = tuple(
        tuple(sorted({first, (first + last) // 2, last - 1})) if chained else ()
        for first, last in blocks
    )
    document = DocumentTokens(
        "d", tokens[: sum(lengths)], blocks, sinks=SINKS, anchors=anchors if chained else ()
    )
    reading = DocumentReading(document, "model", "format", store)
    reading.want()
    reading.begun = True
    return reading


def stored(reading: DocumentReading, store: KVStore) -> list[torch.Tensor]:
    """The KV of each block, [tokens, layers, 2, kv_heads, head_dim]."""
    found = []
    for index, key in enumerate(reading.keys):
        pages = store.pool.data[list(store.block(key).pages)]
        by_token = pages.permute(0, 4, 1, 2, 3, 5).flatten(0, 1)
        found.append(by_token[: len(reading.tokens_of(index))])
    return found


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize("sizes", [(6,), (2, 4), (1, 2, 3)])
def test_a_group_leaves_what_blocks_one_by_one_leave(
    decoder: Decoder, chained: bool, sizes: tuple[int, ...]
) -> None:
    kept = []
    for groups in ((1,) * len(LENGTHS), sizes):
        store = make_store(decoder)
        reader = BlockReader(store, Runner(decoder, store.pool))
        reading = make_reading(store, LENGTHS, chained=chained)
        for first, last in split(groups):
            wanted = range(first, last)
            assert reader.read(reading, wanted) == sum(LENGTHS[first:last])
        assert reading.computed_tokens == sum(LENGTHS)
        assert reading.progress().status == "done"
        store.check_integrity()
        kept.append(stored(reading, store))
    for alone, together in zip(*kept, strict=True):
        torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)


def test_anchors_matter_to_a_group(decoder: Decoder) -> None:
    kept = []
    for chained in (False, True):
        store = make_store(decoder)
        reading = make_reading(store, LENGTHS, chained=chained)
        BlockReader(store, Runner(decoder, store.pool)).read(reading, range(6))
        kept.append(stored(reading, store))
    torch.testing.assert_close(kept[0][0], kept[1][0], atol=1e-5, rtol=1e-5)
    assert all((a - b).abs().max() > 1e-3 for a, b in zip(kept[0][1:], kept[1][1:], strict=True))


def test_a_group_without_sinks(decoder: Decoder) -> None:
    store = make_store(decoder)
    runner = Runner(decoder, store.pool)
    pages = store.reserve(6 * PAGE_TOKENS)
    runner.read_block(TOKENS[:100], (), [], pages[:2])
    runner.read_blocks(
        [GroupedBlock(TOKENS[:100], pages[2:4]), GroupedBlock(TOKENS[100:150], pages[4:5])], (), []
    )
    runner.read_block(TOKENS[100:150], (), [], pages[5:])
    data = store.pool.data
    for one, other, filled in ((0, 2, 64), (1, 3, 36), (5, 4, 50)):
        alone, together = (data[pages[at], ..., :filled, :] for at in (one, other))
        torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)


def test_blocks_that_are_there_and_text_that_repeats_are_read_once(decoder: Decoder) -> None:
    store = make_store(decoder)
    reader = BlockReader(store, Runner(decoder, store.pool))
    reading = make_reading(store, (128,) * 4, (*TOKENS[:256], *TOKENS[:256]), chained=False)
    assert reader.read(reading, (1,)) == 128
    assert reader.read(reading, range(4)) == 128
    assert reading.next_left(1000) == ()
    assert reading.progress().computed_tokens == 256
    store.check_integrity()


def test_what_was_computed_is_told_with_done(
    decoder: Decoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(decoder)
    reading = make_reading(store, LENGTHS, chained=False)
    told: list[tuple[str, int]] = []
    passed = reading.passed

    def look(index: int) -> None:
        passed(index)
        told.append((reading.progress().status, reading.progress().computed_tokens))

    monkeypatch.setattr(reading, "passed", look)
    BlockReader(store, Runner(decoder, store.pool)).read(reading, range(len(LENGTHS)))
    assert [tokens for status, tokens in told if status == "done"] == [sum(LENGTHS)]


def test_a_group_shrinks_to_the_room_there_is(decoder: Decoder) -> None:
    store = make_store(decoder, pages=6)
    reader = BlockReader(store, Runner(decoder, store.pool))
    reading = make_reading(store, (128,) * 4, chained=False)
    reader.read(reading, (0,))
    store.hold(reading.keys[0])
    assert reader.read(reading, (1, 2, 3)) == 128
    assert [store.contains(key) for key in reading.keys] == [True, True, False, False]
    assert reading.next_left(1000) == (2, 3)
    assert reader.read(reading, (2, 3)) == 256
    for index in (2, 3):
        store.hold(reading.keys[index])
    with pytest.raises(PoolExhausted):
        reader.read(reading, (1,))
    store.check_integrity()


def test_a_group_shrinks_to_the_memory_there_is(
    decoder: Decoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(decoder)
    runner = Runner(decoder, store.pool)
    asked = []
    real = runner.read_blocks

    def read_blocks(blocks: Sequence[GroupedBlock], *rest: object) -> None:
        asked.append(len(blocks))
        if len(blocks) > 2:
            raise torch.OutOfMemoryError("no memory for this group")
        real(blocks, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "read_blocks", read_blocks)
    reading = make_reading(store, LENGTHS, chained=True)
    assert BlockReader(store, runner).read(reading, range(5)) == 256
    assert asked == [5, 2]
    store.check_integrity()


@contextmanager
def opened(model: Path, **changes: object) -> Iterator[Engine]:
    base = EngineConfig(model=model, precision="float32", block_tokens=BLOCK, kv_budget=8 << 20)
    with closing(Engine.open(dataclasses.replace(base, **changes))) as engine:  # type: ignore[arg-type]
        yield engine


def document(engine: Engine, key: str, tokens: tuple[int, ...] = TOKENS) -> DocumentTokens:
    return DocumentTokens(key, tokens, engine.split_blocks(len(tokens)), sinks=SINKS, owner=key)


def settle(engine: Engine) -> None:
    """What was asked for has been done."""
    engine.score(QUESTION[:1], QUESTION[1:])


def spy(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tokens of each group that the runner reads."""
    groups: list[int] = []
    real = engine._runner.read_blocks

    def read_blocks(blocks: Sequence[GroupedBlock], *rest: object) -> None:
        groups.append(sum(len(block.token_ids) for block in blocks))
        real(blocks, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(engine._runner, "read_blocks", read_blocks)
    return groups


def test_answers_and_scores_are_those_of_blocks_one_by_one(
    tiny_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence = ((600, 660), (880, 900), (100, 300))
    request = Request("q", QUESTION, FOUR, "d", evidence)
    scores, answers = [], []
    for read_tokens in (0, 4 * BLOCK):
        with opened(tiny_llama, read_tokens=read_tokens) as engine:
            groups = spy(engine, monkeypatch)
            assert engine.read(document(engine, "d")).wait(60).computed_tokens == len(TOKENS)
            assert groups == ([512, 388] if read_tokens else [])
            answers.append([e.token_id for e in engine.generate(request)])
            scores.append(
                engine.score(QUESTION[:1], QUESTION[1:], document_key="d", evidence=evidence)
            )
            engine._store.check_integrity()
    assert answers[0] == answers[1]
    torch.testing.assert_close(
        torch.tensor(scores[0]), torch.tensor(scores[1]), atol=1e-4, rtol=1e-5
    )


def test_a_question_has_its_missing_blocks_read_together(
    tiny_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tiny_llama, read_tokens=4 * BLOCK) as engine:
        groups = spy(engine, monkeypatch)
        engine.read(document(engine, "d"), lazy=True)
        evidence = ((600, 660), (880, 900), (100, 200))
        usage = list(engine.generate(Request("q", QUESTION, FOUR, "d", evidence)))[-1].usage
        assert usage is not None and usage.read_tokens == 5 * BLOCK + 4
        # The best evidence first; the sixth block would not fit.
        assert groups == [3 * BLOCK + 4, 2 * BLOCK]
        other = document(engine, "e", TOKENS[::-1])
        engine.read(other, lazy=True)
        engine.score(QUESTION[:1], QUESTION[1:], document_key="e", evidence=((0, 512),))
        assert groups[2:] == [4 * BLOCK]


def test_cancelled_between_two_groups(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tiny_llama, read_tokens=2 * BLOCK) as engine:
        real = engine._runner.read_blocks

        def read_blocks(*arguments: object) -> None:
            real(*arguments)  # type: ignore[arg-type]
            engine._documents["d"].cancelled = True

        monkeypatch.setattr(engine._runner, "read_blocks", read_blocks)
        state = engine.read(document(engine, "d")).wait(60)
        assert (state.status, state.read_tokens) == ("cancelled", 2 * BLOCK)
        settle(engine)
        engine._store.check_integrity()


def test_a_group_that_fails_leaves_no_pages_behind(
    tiny_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tiny_llama, read_tokens=4 * BLOCK) as engine:
        real = engine._store.pool.write_tokens

        def write_tokens(pages: torch.Tensor, slots: torch.Tensor, layer: int, *kv: object) -> None:
            if layer == 2:
                raise RuntimeError("out of luck")
            real(pages, slots, layer, *kv)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(engine._store.pool, "write_tokens", write_tokens)
            state = engine.read(document(engine, "d")).wait(60)
            assert (state.status, state.read_tokens) == ("failed", 0)
            assert "out of luck" in state.error
            asked = Request("q", QUESTION, FOUR, "d", ((0, 500),))
            assert "out of luck" in list(engine.generate(asked))[-1].error
            settle(engine)
            assert engine.counters.pages_used == 0
            engine._store.check_integrity()
        assert engine.read(document(engine, "d")).wait(60).status == "done"


def test_questions_between_the_groups_of_a_document(
    tiny_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tiny_llama, read_tokens=4 * BLOCK) as engine:
        groups = spy(engine, monkeypatch)
        long = document(engine, "long", tuple(t % 480 + 3 for t in range(5, 5000)))
        engine.read(document(engine, "d"), lazy=True)
        ticket = engine.read(long)
        request = Request("q", QUESTION, FOUR, "d", ((600, 660), (100, 200)))
        early = [event.token_id for event in engine.generate(request)]
        assert ticket.wait(120).status == "done"
        again = [e.token_id for e in engine.generate(dataclasses.replace(request, request_id="r"))]
        assert early == again
        assert max(groups) <= 4 * BLOCK
        engine._store.check_integrity()


def test_a_cpu_reads_one_block_at_a_time(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tiny_llama) as engine:
        groups = spy(engine, monkeypatch)
        short = dataclasses.replace(document(engine, "d"), blocks=tuple(split((20,) * 45)))
        assert engine.read(short).wait(60).status == "done"
        engine.read(dataclasses.replace(short, key="e", owner="e"), lazy=True)
        engine.score(QUESTION[:1], QUESTION[1:], document_key="e", evidence=((0, 200),))
        assert groups == []


def test_the_default_of_a_step_is_by_device() -> None:
    config = EngineConfig(Path("m"), block_tokens=256)
    assert config.resolved_read_tokens() == 1
    assert dataclasses.replace(config, device="cuda:0").resolved_read_tokens() == 32_768
    assert dataclasses.replace(config, read_tokens=1024).resolved_read_tokens() == 1024
