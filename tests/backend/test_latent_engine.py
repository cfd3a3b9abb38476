"""The engine on a tiny random model with latent attention: pages hold latents, and every way to
them gives the same answers."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from backend.block_group import GroupedBlock
from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.latent_context import LatentContext
from backend.loader import load_checkpoint
from backend.models import build_decoder
from backend.runner import Runner
from backend.sequence import Sequence
from backend.types import DocumentTokens, Request, SamplingParams
from kvstore.formats import FORMATS, FormatName
from kvstore.pool import PagePool

_RANDOM = torch.Generator().manual_seed(29)
TOKENS: tuple[int, ...] = tuple(torch.randint(3, 500, (700,), generator=_RANDOM).tolist())
SINKS = tuple(range(10, 31))
QUESTION = tuple(range(40, 60))
ANSWER = SamplingParams(max_tokens=8, ignore_eos=True, logprobs=3)
REQUEST = Request("q", QUESTION, ANSWER, "d", ((520, 600), (300, 340), (10, 90)))
BLOCK = 128
PAGE = 3 * 64 * 32 * 4
"""Bytes of a page: 3 layers, 64 tokens of 24 + 8 channels in float32, no values."""

Step = tuple[int | None, float | None, tuple[tuple[int, float], ...]]


@contextmanager
def opened(model: Path, **changes: object) -> Iterator[Engine]:
    config = EngineConfig(
        model=model, precision="float32", block_tokens=BLOCK, kv_budget=8 << 20,
        disk_budget=64 << 20,
    )  # fmt: skip
    engine = Engine.open(dataclasses.replace(config, **changes))  # type: ignore[arg-type]
    try:
        yield engine
    finally:
        engine.close()


def document(engine: Engine, *, chained: bool = False) -> DocumentTokens:
    blocks = engine.split_blocks(len(TOKENS))
    anchors = tuple((first, first + 1) for first, _ in blocks) if chained else ()
    return DocumentTokens("d", TOKENS, blocks, anchors=anchors, sinks=SINKS, owner="o")


def ask(engine: Engine) -> tuple[list[Step], int]:
    events = list(engine.generate(REQUEST))
    usage = events[-1].usage
    assert usage is not None and not events[-1].error, events[-1]
    return [(event.token_id, event.logprob, event.best) for event in events], usage.read_tokens


def settled(engine: Engine) -> None:
    """Until the disk has all that it shall have."""
    engine.score(QUESTION[:1], QUESTION[1:])
    end = time.monotonic() + 20
    while engine._store._unsaved:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert engine._store.disk is not None
    assert engine._store.disk.settle()


def test_all_pages_of_one_block_equal_dense_attention(tiny_latent: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(tiny_latent).eval()
    whole = (*SINKS, *TOKENS, *QUESTION)
    with torch.inference_mode():
        logits = model(torch.tensor(whole)[None]).logits[0].log_softmax(-1)
    expected = [float(logits[i, whole[i + 1]]) for i in range(len(whole) - 20, len(whole) - 1)]
    with opened(tiny_latent, block_tokens=768) as engine:
        assert engine.kv_page_bytes == PAGE
        engine.read(document(engine)).wait(60)
        scores = engine.score(
            QUESTION[:1], QUESTION[1:], document_key="d", evidence=((0, len(TOKENS)),)
        )
    torch.testing.assert_close(torch.tensor(scores), torch.tensor(expected), atol=1e-3, rtol=0)


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_a_hit_is_a_miss_to_the_last_bit(
    tiny_latent: Path, tmp_path: Path, form: FormatName, chained: bool
) -> None:
    settings = {"kv_format": form, "reading": "chained" if chained else "independent"}
    with opened(tiny_latent, **settings) as engine:
        engine.read(document(engine, chained=chained), lazy=True)
        cold, read = ask(engine)
        assert read >= 3 * BLOCK
    with opened(tiny_latent, **settings, read_tokens=4 * BLOCK) as engine:
        # In groups: the rounding of a product over more rows may differ, what is seen may not.
        engine.read(document(engine, chained=chained)).wait(60)
        group, _ = ask(engine)
    with opened(tiny_latent, **settings, disk_folder=tmp_path) as engine:
        engine.read(document(engine, chained=chained)).wait(60)
        memory, read = ask(engine)
        assert read == 0
        settled(engine)
        counters = engine.counters.disk
        assert counters is not None
        assert counters.bytes_written == 11 * engine.kv_page_bytes
    with opened(tiny_latent, **settings, disk_folder=tmp_path) as engine:
        engine.read(document(engine, chained=chained)).wait(60)
        disk, read = ask(engine)
        assert (read, engine.counters.read_tokens) == (0, 0)
    assert cold == memory == disk
    assert [token for token, _, _ in group] == [token for token, _, _ in cold]


def test_requests_side_by_side_give_what_they_give_alone(tiny_latent: Path) -> None:
    with opened(tiny_latent) as engine:
        engine.read(document(engine)).wait(60)
        requests = [
            dataclasses.replace(REQUEST, request_id=f"r{at}", prompt_ids=QUESTION[at:])
            for at in range(3)
        ]
        alone = [[e.token_id for e in engine.generate(request)] for request in requests]
        streams = [engine.generate(request) for request in requests]
        assert [[e.token_id for e in stream] for stream in streams] == alone


def test_guesses_that_fail_are_taken_back(
    tiny_latent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def guess(sequence: Sequence) -> list[int]:
        return [5, 6, 7][: ANSWER.max_tokens - len(sequence.tokens) - 1]

    with opened(tiny_latent) as engine:
        engine.read(document(engine)).wait(60)
        plain = [event.token_id for event in engine.generate(REQUEST)]
        taken: list[int] = []
        real = LatentContext.take_back

        def take_back(context: LatentContext, count: int) -> None:
            taken.append(count)
            real(context, count)

        monkeypatch.setattr(LatentContext, "take_back", take_back)
        monkeypatch.setattr(Sequence, "guess", guess)
        assert [event.token_id for event in engine.generate(REQUEST)] == plain
        assert max(taken) == 3


def test_a_group_leaves_what_blocks_one_by_one_leave(tiny_latent: Path) -> None:
    decoder = build_decoder(load_checkpoint(tiny_latent), "float32", torch.device("cpu"))
    pool = PagePool(decoder.config.kv_shape, 8, torch.float32)
    # A token that was not written would show.
    pool.data.fill_(float("nan"))
    runner = Runner(decoder, pool)
    lengths, first = (128, 37, 1), 0
    blocks = []
    for length, pages in zip(lengths, ((0, 1), (2,), (3,)), strict=True):
        blocks.append(GroupedBlock(TOKENS[first : first + length], pages))
        runner.read_block(blocks[-1].token_ids, SINKS, [], pages)
        first += length
    moved = [GroupedBlock(b.token_ids, [page + 4 for page in b.pages]) for b in blocks]
    runner.read_blocks(moved, SINKS, [])
    for page, filled in ((0, 64), (1, 64), (2, 37), (3, 1)):
        alone, together = (pool.data[at, ..., :filled, :] for at in (page, page + 4))
        torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)


@pytest.mark.gpu
def test_a_gpu_scores_as_a_cpu_does(tiny_latent: Path) -> None:
    scores = []
    for device in ("cpu", "cuda"):
        with opened(tiny_latent, device=device) as engine:
            engine.read(document(engine)).wait(60)
            scores.append(
                engine.score(QUESTION[:1], QUESTION[1:], document_key="d", evidence=((10, 600),))
            )
    torch.testing.assert_close(torch.tensor(scores[0]), torch.tensor(scores[1]), atol=1e-3, rtol=0)
