"""KV on the disk: after a restart nothing is read again, and a hit answers as a miss does."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.types import DocumentTokens, Request, SamplingParams, Usage
from kvstore.tiers.document_file import DocumentFile
from retrieval.parse import parse_file

SAMPLES = Path(__file__).parents[2] / "samples"

_RANDOM = torch.Generator().manual_seed(11)
TOKENS: tuple[int, ...] = tuple(torch.randint(3, 500, (900,), generator=_RANDOM).tolist())
SINKS = tuple(range(10, 31))
QUESTION = tuple(range(40, 60))
ANSWER = SamplingParams(max_tokens=12, ignore_eos=True, logprobs=5)
EVIDENCE = ((700, 790), (300, 340), (10, 90))
PAGE = 3 * 2 * 2 * 64 * 10 * 4
"""Bytes of a page of the tiny model."""


@contextmanager
def opened(model: Path, folder: Path | None, **changes: object) -> Iterator[Engine]:
    config = EngineConfig(
        model=model, precision="float32", block_tokens=128, kv_budget=8 << 20,
        disk_folder=folder, disk_budget=64 << 20,
    )  # fmt: skip
    engine = Engine.open(dataclasses.replace(config, **changes))  # type: ignore[arg-type]
    try:
        yield engine
    finally:
        engine.close()


def document(
    engine: Engine, key: str = "d", tokens: tuple[int, ...] = TOKENS, *, chained: bool = False
) -> DocumentTokens:
    blocks = engine.split_blocks(len(tokens))
    anchors = tuple((first, first + 1) for first, _ in blocks) if chained else ()
    return DocumentTokens(key, tokens, blocks, anchors=anchors, sinks=SINKS, owner="o")


def settled(engine: Engine) -> None:
    """Until the disk has all that it shall have."""
    engine.score(QUESTION[:1], QUESTION[1:])  # the engine has come to its commands
    end = time.monotonic() + 20
    while engine._store._unsaved:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert engine._store.disk is not None
    assert engine._store.disk.settle()
    engine._mail.call(engine._store.check_integrity)


Step = tuple[int | None, float | None, tuple[tuple[int, float], ...]]


def ask(engine: Engine, key: str = "d") -> tuple[list[Step], Usage]:
    events = list(engine.generate(Request("q", QUESTION, ANSWER, key, EVIDENCE)))
    usage = events[-1].usage
    assert usage is not None and not events[-1].error, events[-1]
    return [(event.token_id, event.logprob, event.best) for event in events], usage


@pytest.mark.parametrize("chained", [False, True])
def test_a_hit_on_disk_answers_as_a_miss_and_reads_nothing(
    tiny_llama: Path, tmp_path: Path, chained: bool
) -> None:
    reading = "chained" if chained else "independent"
    with opened(tiny_llama, None, reading=reading) as engine:
        engine.read(document(engine, chained=chained), lazy=True)
        cold, usage = ask(engine)
        assert usage.read_tokens >= 4 * 128
    with opened(tiny_llama, tmp_path, reading=reading) as engine:
        engine.read(document(engine, chained=chained)).wait(60)
        memory, usage = ask(engine)
        assert usage.read_tokens == 0
        settled(engine)
        counters = engine.counters.disk
        assert counters is not None
        # 900 tokens are 15 pages (a block of 4 tokens begins one).
        assert counters.bytes_written == 15 * PAGE
        assert (counters.hits, counters.misses) == (0, 8)
    with opened(tiny_llama, tmp_path, reading=reading) as engine:
        ticket = engine.read(document(engine, chained=chained))
        assert ticket.wait(20).status == "done"
        assert engine.counters.pages_used == 0, "nothing is loaded before it is needed"
        disk, usage = ask(engine)
        assert usage.read_tokens == 0
        assert ticket.progress().computed_tokens == 0
        assert engine.counters.read_tokens == 0
        counters = engine.counters.disk
        assert counters is not None
        needed = 7 if chained else 4
        # The evidence lies in blocks 0, 2, 5 and 6.
        assert (counters.hits, counters.misses) == (needed, 0) or chained
        assert engine.counters.pages_used == counters.bytes_read // PAGE
    assert cold == memory == disk, "same tokens and, to the last bit, the same log-probabilities"


def test_a_half_read_document_goes_on_where_it_was(tiny_llama: Path, tmp_path: Path) -> None:
    for reading, chained in (("independent", False), ("chained", True)):
        folder = tmp_path / reading
        with opened(tiny_llama, folder, reading=reading) as engine:
            engine.read(document(engine, chained=chained), lazy=True)
            list(engine.generate(Request("q", QUESTION, ANSWER, "d", ((130, 300),))))
            settled(engine)
            read = engine.counters.read_tokens
            assert 0 < read < len(TOKENS)
        with opened(tiny_llama, folder, reading=reading) as engine:
            state = engine.read(document(engine, chained=chained)).wait(60)
            assert (state.status, state.read_tokens) == ("done", len(TOKENS))
            assert state.computed_tokens == len(TOKENS) - read
            steps, _ = ask(engine)
        with opened(tiny_llama, None, reading=reading) as engine:
            engine.read(document(engine, chained=chained)).wait(60)
            assert ask(engine)[0] == steps


def test_what_memory_cannot_hold_comes_back_from_disk(tiny_llama: Path, tmp_path: Path) -> None:
    texts = {"a": TOKENS, "b": TOKENS[::-1]}
    with opened(tiny_llama, tmp_path, kv_budget=17 * PAGE) as engine:
        answers = []
        for name, tokens in texts.items():
            assert engine.read(document(engine, name, tokens)).wait(60).status == "done"
            answers.append(ask(engine, name)[0])
        settled(engine)
        before = engine.counters.read_tokens
        again = [ask(engine, name) for name in texts]
        assert engine.counters.read_tokens == before == 2 * len(TOKENS)
        assert [steps for steps, _ in again] == answers
        for name in texts:
            state = engine.progress(name)
            assert state is not None and state.read_tokens == len(TOKENS)


def damage_every_page(folder: Path) -> None:
    for path in folder.glob("*.safetensors"):
        with path.open("r+b") as file:
            for offset in range(8192, path.stat().st_size - 4096, PAGE):
                file.seek(offset)
                byte = file.read(1)[0]
                file.seek(offset)
                file.write(bytes([byte ^ 64]))


def cut(folder: Path) -> None:
    for path in folder.glob("*.safetensors"):
        os.truncate(path, path.stat().st_size // 2)


def remove_pages(folder: Path) -> None:
    for path in folder.glob("*.safetensors"):
        path.unlink()


def swap_manifests(folder: Path) -> None:
    first, second = sorted(folder.glob("*.json"))
    text = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(text)


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (damage_every_page, "checksum"),
        (cut, "truncated"),
        (remove_pages, "missing"),
        (swap_manifests, "manifest"),
    ],
)
@pytest.mark.parametrize("running", [False, True])
def test_a_harmed_file_is_refused_and_its_text_read_again(
    tiny_llama: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    harm: Callable[[Path], None],
    reason: str,
    running: bool,
) -> None:
    with opened(tiny_llama, tmp_path) as engine:
        for name, tokens in (("d", TOKENS), ("e", TOKENS[:400][::-1])):
            engine.read(document(engine, name, tokens)).wait(60)
        expected, _ = ask(engine)
        settled(engine)
    if not running:
        harm(tmp_path)
    with opened(tiny_llama, tmp_path) as engine:
        if running:
            harm(tmp_path)
            if reason == "manifest":
                return  # a manifest is read at the start only
        state = engine.read(document(engine)).wait(60)
        assert state.status == "done"
        steps, usage = ask(engine)
        assert steps == expected
        counters = engine.counters.disk
        assert counters is not None
        assert counters.refused.get(reason, 0) >= 1
        assert counters.hits == 0 or harm is cut, "the first half of a cut file is good"
        assert "the text is read again" in caplog.text
        settled(engine)
    with opened(tiny_llama, tmp_path) as engine:
        # What was read again was kept again.
        engine.read(document(engine)).wait(60)
        steps, usage = ask(engine)
        assert (steps, usage.read_tokens) == (expected, 0)


def test_other_models_owners_and_modes_find_nothing(tiny_llama: Path, tmp_path: Path) -> None:
    with opened(tiny_llama, tmp_path) as engine:
        engine.read(document(engine)).wait(60)
        settled(engine)
    with opened(tiny_llama, tmp_path) as engine:
        foreign = dataclasses.replace(document(engine, "theirs"), owner="other")
        assert engine.read(foreign).wait(60).computed_tokens == len(TOKENS)
        other = dataclasses.replace(document(engine, "other sinks"), sinks=SINKS[:-1])
        assert engine.read(other).wait(60).computed_tokens == len(TOKENS)
        mine = engine.read(document(engine, "same owner")).wait(60)
        assert mine.computed_tokens == 0
        settled(engine)
    with opened(tiny_llama, tmp_path, reading="chained") as engine:
        assert engine.read(document(engine)).wait(60).computed_tokens == len(TOKENS)
    with opened(tiny_llama, tmp_path, precision="bfloat16") as engine:
        assert engine.read(document(engine)).wait(60).computed_tokens == len(TOKENS)
    with opened(tiny_llama, tmp_path) as engine:
        assert engine.read(document(engine)).wait(60).computed_tokens == 0


def files(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*") if path.suffix in (".json", ".safetensors")]


def test_a_deleted_document_leaves_no_file(tiny_llama: Path, tmp_path: Path) -> None:
    with opened(tiny_llama, tmp_path) as engine:
        engine.read(document(engine)).wait(60)
        engine.read(document(engine, "version 2", (*TOKENS[:512], *TOKENS[:100]))).wait(60)
        settled(engine)
        assert len(files(tmp_path)) == 4
        engine.forget("d")
        settled(engine)
        assert len(files(tmp_path)) == 2
    with opened(tiny_llama, tmp_path) as engine:
        # What both shared was kept with the other, too.
        version = document(engine, "version 2", (*TOKENS[:512], *TOKENS[:100]))
        assert engine.read(version).wait(60).computed_tokens == 0
        with opened(tiny_llama, tmp_path) as beside:
            assert beside.counters.disk is None, "one engine a folder"
            beside.forget("version 2")
            beside.score(QUESTION[:1], QUESTION[1:])
        assert files(tmp_path) == []
        # Its files went while the engine had them in its books: read again.
        usage = list(engine.generate(Request("q", QUESTION, ANSWER, "version 2", ((0, 9),))))[-1]
        assert usage.usage is not None and usage.usage.read_tokens == 128


def test_documents_that_nobody_has_any_more_are_swept(tiny_llama: Path, tmp_path: Path) -> None:
    with opened(tiny_llama, tmp_path) as engine:
        for name in ("kept", "gone"):
            engine.read(document(engine, name)).wait(60)
        settled(engine)
        engine.keep_documents([])
        settled(engine)
        assert len(files(tmp_path)) == 4, "the engine knows both"
    with opened(tiny_llama, tmp_path) as engine:
        engine.keep_documents(["kept"])
        settled(engine)
        assert len(files(tmp_path)) == 2
        assert engine.read(document(engine, "kept")).wait(60).computed_tokens == 0
    with opened(tiny_llama, tmp_path, disk_budget=0) as engine:
        assert engine.counters.disk is None
        assert files(tmp_path) == []


def test_the_budget_holds_whole_documents_the_last_used(tiny_llama: Path, tmp_path: Path) -> None:
    size = 15 * PAGE + 3 * 4096 + 4 * len(TOKENS)
    names = ("a", "b", "c")
    with opened(tiny_llama, tmp_path, disk_budget=2 * size) as engine:
        for turn, name in enumerate(names):
            tokens = (*TOKENS[turn:], *TOKENS[:turn])
            engine.read(document(engine, name, tokens)).wait(60)
            settled(engine)
            if name == "b":
                engine.read(document(engine, "a")).wait(60)
                settled(engine)
        counters = engine.counters.disk
        assert counters is not None
        assert counters.bytes_held <= 2 * size
        assert counters.unsaved == {"budget": 8}
    with opened(tiny_llama, tmp_path, disk_budget=2 * size) as engine:
        computed = []
        for turn, name in enumerate(names):
            tokens = (*TOKENS[turn:], *TOKENS[:turn])
            reading = engine.read(document(engine, name, tokens), lazy=True)
            computed.append(reading.progress().read_tokens)
    assert computed == [900, 0, 900], "b was used least recently"
    with opened(tiny_llama, tmp_path / "small", disk_budget=size // 2) as engine:
        engine.read(document(engine)).wait(60)
        settled(engine)
        counters = engine.counters.disk
        assert counters is not None
        assert counters.bytes_held == 0
        assert counters.unsaved["budget"] >= 1
        assert ask(engine)[1].read_tokens == 0


def test_a_page_takes_nothing_along_from_who_had_it_before(
    tiny_llama: Path, tmp_path: Path
) -> None:
    with opened(tiny_llama, tmp_path) as engine:
        engine._store.pool.data.fill_(7.5)
        engine.read(document(engine, "short", TOKENS[:70])).wait(60)
        settled(engine)
        key = engine._documents["short"].keys[0]
        assert engine._store.disk is not None
        raw = engine._store.disk.take(key, TOKENS[:70])
        assert raw is not None
        pages = torch.frombuffer(raw, dtype=torch.float32).view(2, 3, 2, 2, 64, 10)
        assert not pages[1, ..., 6:, :].any()
        assert pages[1, ..., :6, :].all()
        assert not (pages == 7.5).any()


def test_a_disk_that_fails_costs_no_answer(
    tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tiny_llama, tmp_path) as engine:

        def full(*_: object) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "pwrite", full)
        engine.read(document(engine)).wait(60)
        settled(engine)
        monkeypatch.undo()
        counters = engine.counters.disk
        assert counters is not None
        assert counters.unsaved["error"] >= 1
        assert files(tmp_path) == []
        assert ask(engine)[1].read_tokens == 0
        # It is kept when it is given again.
        engine.read(document(engine)).wait(60)
        settled(engine)
        assert len(files(tmp_path)) == 2


@pytest.mark.model
def test_the_default_model_answers_alike_cold_from_memory_and_from_disk(
    default_model: Path, tmp_path: Path
) -> None:
    text = (parse_file(next(SAMPLES.glob("*en*.pdf")), "contract.pdf").text)[:6000]
    settings = {"precision": "auto", "block_tokens": 512, "kv_budget": 256 << 20}
    answers = []
    for turns in (("cold", "memory"), ("disk",)):
        with opened(default_model, tmp_path, disk_budget=256 << 20, **settings) as engine:
            given = document(engine, tokens=tuple(engine.tokenizer.encode(text)))
            engine.read(given, lazy=True)
            question = tuple(engine.tokenizer.encode("\nWhat is the purchase price? It is"))
            request = Request("q", question, ANSWER, "d", ((900, 1000), (40, 300)))
            for turn in turns:
                events = list(engine.generate(request))
                usage = events[-1].usage
                assert usage is not None and not events[-1].error, events[-1]
                assert usage.read_tokens == (1024 if turn == "cold" else 0)
                answers.append(events)
            settled(engine)
            kept = engine._store.pool.data.dtype
            assert kept == (torch.bfloat16 if torch.cpu._is_vnni_supported() else torch.float32)
            counters = engine.counters.disk
            assert counters is not None and counters.hits == (2 if turns == ("disk",) else 0)
    first, *others = ([event.token_id for event in events] for events in answers)
    assert others == [first, first]
    for events in answers[1:]:
        for mine, cold in zip(events, answers[0], strict=True):
            for (token, value), (other, expected) in zip(mine.best, cold.best, strict=True):
                assert token == other
                assert value == pytest.approx(expected, abs=1e-3)


def test_questions_that_all_wait_for_the_disk_are_answered(
    tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each asks for blocks of its own: none may have the disk drop what another waits for."""
    texts = {f"d{number}": tuple(t + number for t in TOKENS) for number in range(4)}
    with opened(tiny_llama, tmp_path) as engine:
        for key, tokens in texts.items():
            assert engine.read(document(engine, key, tokens)).wait(60).status == "done"
        settled(engine)
    read_block, reads = DocumentFile.read, 0

    with opened(tiny_llama, tmp_path) as engine:

        def slowly(file: DocumentFile, index: int) -> tuple[bytearray, Sequence[int]]:
            nonlocal reads
            reads += 1
            if reads > 40 * len(texts):
                for key in texts:
                    engine.cancel(key)
            time.sleep(0.005)
            return read_block(file, index)

        for key, tokens in texts.items():
            engine.read(document(engine, key, tokens), lazy=True)
        monkeypatch.setattr(DocumentFile, "read", slowly)
        requests = [
            Request(key, QUESTION, SamplingParams(max_tokens=1), key, ((0, 900),), owner=key)
            for key in texts
        ]
        for stream in [engine.generate(request) for request in requests]:
            last = list(stream)[-1]
            assert last.finish_reason in ("length", "stop"), last
            assert last.usage is not None and last.usage.read_tokens == 0
