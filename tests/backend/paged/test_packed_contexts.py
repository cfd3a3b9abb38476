"""Contexts whose evidence stays packed against contexts that decode it first, on a tiny random
model. Triton's interpreter has a process of its own here and takes whole steps; on a GPU the tests
marked `gpu` do."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import torch

from backend.block_group import GroupedBlock
from backend.context import Context
from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.errors import BackendError
from backend.loader import load_checkpoint
from backend.models import Decoder
from backend.paged.arena import Arena, PagedContext
from backend.paged.packed import PackedArena
from backend.parts import EngineParts, load_parts, make_arena
from backend.runner import Runner
from backend.types import DocumentTokens, Request, SamplingParams
from kvstore.formats import FormatName, page_format
from kvstore.pool import PagePool
from kvstore.types import KVShape, PageRef, PageTable

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
kernels = pytest.mark.usefixtures("device") if INTERPRETED else pytest.mark.gpu
NAMES: tuple[FormatName, ...] = ("fp8_tokens32", "fp8_token_head", "int8", "int4")
INTERPRETED_NAMES: tuple[FormatName, ...] = ("fp8_token_head", "int4")
"""A step takes the interpreter seconds."""
every_format = pytest.mark.parametrize("name", NAMES)

_RANDOM = torch.Generator().manual_seed(29)
IDS: list[int] = torch.randint(3, 500, (500,), generator=_RANDOM).tolist()
SINKS = tuple(range(10, 31))
QUESTION = tuple(range(40, 60))
BLOCKS = (((0, 200), (7, 2, 3, 5)), ((200, 300), (1, 6)))
TABLES = (
    PageTable((PageRef(3, 0, 64), PageRef(1, 0, 64), PageRef(6, 0, 36))),
    PageTable(()),
    PageTable((PageRef(2, 5, 20), PageRef(7, 63, 1))),
)


@pytest.fixture
def device() -> str:
    """Where the kernels run."""
    if INTERPRETED:
        return "cpu"
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return "cuda"


def decoder_on(device: str, model: Path) -> Decoder:
    checkpoint = load_checkpoint(model)
    return Decoder(checkpoint.config, checkpoint.tensors, "float32", torch.device(device))


def shape_of(decoder: Decoder) -> KVShape:
    config = decoder.config
    return KVShape(config.layers, config.kv_heads, config.head_dim)


def make_arena_of(decoder: Decoder, name: FormatName, pages: int = 30, evidence: int = 9) -> Arena:
    shape, device = shape_of(decoder), decoder.device
    form = page_format(name, torch.float32)
    packed = PackedArena(
        PagePool(shape, evidence, torch.float32, device, form), contexts=6, context_pages=evidence
    )
    pool = PagePool(shape, pages, torch.float32, device)
    arena = Arena(pool, contexts=6, context_pages=pages, packed=packed)
    # A token that was not written would show.
    arena.pool.data[1:] = float("nan")
    packed.pool.data.fill_(255)
    return arena


def make_runner(
    decoder: Decoder, name: FormatName, arena: Arena | None, *, reads: bool = True
) -> Runner:
    """With blocks read into pages of the format."""
    form = page_format(name, torch.float32)
    pool = PagePool(shape_of(decoder), 8, torch.float32, decoder.device, form)
    pool.data.fill_(255)
    runner = Runner(decoder, pool, arena)
    if reads:
        runner.read_blocks([GroupedBlock(IDS[a:b], pages) for (a, b), pages in BLOCKS], SINKS, [])
    return runner


def compare_steps(plain: Runner, packed: Runner) -> None:
    """Steps of several contexts, and of contexts in rows that others left."""
    assert torch.equal(plain._pool.data, packed._pool.data), "pages are made alike"
    for round_ in range(2):
        tables = TABLES if round_ == 0 else TABLES[::-1]
        one, many = (
            [runner.open_context(SINKS, [(2, 7)], table, 100) for table in tables]
            for runner in (plain, packed)
        )
        assert all(isinstance(context, Context) for context in one)
        assert all(isinstance(context, PagedContext) for context in many)
        for ids in ([IDS[:1], IDS[1:2], IDS[2:3]], [IDS[10:13], IDS[13:14], IDS[14:19]],
                    [IDS[20:21], IDS[21:22], IDS[22:23]]):  # fmt: skip
            expected, found = plain.step(one, ids), packed.step(many, ids)
            for theirs, ours in zip(expected, found, strict=True):
                torch.testing.assert_close(ours.logits.cpu(), theirs.logits, atol=2e-4, rtol=2e-4)
            for contexts in (one, many):
                contexts[2].take_back(1)
        assert [c.length for c in one] == [c.length for c in many]
        for context in many:
            context.close()


@every_format
def test_a_step_equals_contexts_that_were_decoded(tiny_llama: Path, name: FormatName) -> None:
    decoder = decoder_on("cpu", tiny_llama)
    arena = make_arena_of(decoder, name)
    compare_steps(make_runner(decoder, name, None), make_runner(decoder, name, arena))
    assert arena.packed is not None
    assert arena.packed.pool.free == arena.packed.pool.total
    assert arena.pool.free == arena.pool.total - 1


@kernels
@pytest.mark.parametrize("name", INTERPRETED_NAMES if INTERPRETED else NAMES)
def test_a_step_of_the_kernels(
    tiny_llama: Path, name: FormatName, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = decoder_on(device, tiny_llama)
    # The very pages of the other: kernels of reading take no heads as small as these.
    packed = make_runner(decoder, name, make_arena_of(decoder, name), reads=False)
    if INTERPRETED:
        # Choosing is by device; the norms of a CPU's layers stay torch's.
        assert packed._step is not None
        monkeypatch.setattr(packed._step, "_impl", "triton")
    plain = make_runner(decoder_on("cpu", tiny_llama), name, None)
    packed._pool.data.copy_(plain._pool.data)
    one, many = (
        [runner.open_context(SINKS, [(2, 7)], table, 100) for table in TABLES]
        for runner in (plain, packed)
    )
    for ids in ([IDS[:1], IDS[1:2], IDS[2:3]], [IDS[10:13], IDS[13:14], IDS[14:17]]):
        for theirs, ours in zip(plain.step(one, ids), packed.step(many, ids), strict=True):
            torch.testing.assert_close(ours.logits.cpu(), theirs.logits, atol=1e-3, rtol=1e-3)


@every_format
def test_without_room_evidence_is_decoded(tiny_llama: Path, name: FormatName) -> None:
    decoder = decoder_on("cpu", tiny_llama)
    plain = make_runner(decoder, name, None)
    packed = make_runner(decoder, name, make_arena_of(decoder, name, evidence=4))
    first, second = (packed.open_context(SINKS, [], TABLES[0], 20) for _ in range(2))
    assert isinstance(first, PagedContext)
    assert isinstance(second, PagedContext)
    assert (len(first.packed), len(second.packed)) == (3, 0)
    assert second.pages_of(second.length) == len(second.pages) - 1
    expected = [plain.open_context(SINKS, [], TABLES[0], 20) for _ in range(2)]
    theirs = plain.step(expected, [IDS[:2], IDS[:2]])
    ours = packed.step([first, second], [IDS[:2], IDS[:2]])
    for one, other in zip(theirs, ours, strict=True):
        torch.testing.assert_close(other.logits, one.logits, atol=2e-4, rtol=2e-4)


def test_pages_of_another_format_are_refused(tiny_llama: Path) -> None:
    decoder = decoder_on("cpu", tiny_llama)
    runner = make_runner(decoder, "int8", make_arena_of(decoder, "int4"))
    with pytest.raises(BackendError, match="int8/token_head pages in an arena of int4"):
        runner.open_context(SINKS, [], TABLES[0], 20)
    assert runner._arena is not None
    assert runner._arena.pool.free == runner._arena.pool.total - 1
    with pytest.raises(BackendError, match="float32 pages are not read"):
        PackedArena(PagePool(shape_of(decoder), 2, torch.float32))


@pytest.mark.parametrize("form", NAMES)
def test_the_engine_answers_the_same(tiny_llama: Path, form: FormatName) -> None:
    config = EngineConfig(
        model=tiny_llama, precision="float32", block_tokens=128, kv_budget=8 << 20, kv_format=form
    )
    arenas: list[Arena] = []

    def load(config: EngineConfig) -> EngineParts:
        parts = load_parts(config)
        pool = parts.store.pool
        arenas.append(make_arena(parts.model, pool.shape, 12 << 20, pool.format))
        return dataclasses.replace(parts, arena=arenas[-1])

    answers = []
    for make in (load_parts, load):
        with closing(Engine.open(config, make)) as engine:
            document = DocumentTokens("d", tuple(IDS), engine.split_blocks(len(IDS)), sinks=SINKS)
            engine.read(document).wait(60)
            sampling = SamplingParams(max_tokens=12, ignore_eos=True)
            requests = [
                Request(f"q{n}", QUESTION[n:], sampling, "d", ((300, 400), (64 * n, 64 * n + 100)))
                for n in range(3)
            ]
            streams = [engine.generate(request) for request in requests]
            answers.append([[event.token_id for event in stream] for stream in streams])
    assert answers[0] == answers[1]
    (arena,) = arenas
    assert arena.packed is not None
    assert arena.packed.pool.free == arena.packed.pool.total
    assert arena.pool.free == arena.pool.total - 1


def test_packed_kernels_are_for_gpus(tiny_llama: Path) -> None:
    config = EngineConfig(
        model=tiny_llama, precision="float32", kv_budget=64 << 20, packed_kernels=True
    )
    with pytest.raises(BackendError, match="unset FINEPRINT_KV_PACKED_KERNELS"):
        load_parts(dataclasses.replace(config, kv_format="int8"))


@pytest.mark.skipif(INTERPRETED, reason="this is the interpreter's process")
def test_steps_in_the_interpreter() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not gpu", "-p", "no:cacheprovider"]
    command += ["-k", "of_the_kernels", __file__]
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert f"{len(INTERPRETED_NAMES)} passed" in done.stdout
