"""Host memory behind the pool: what had to make room answers as before, or as its smaller format
does, and is not read again. Pins keep a document where it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.errors import BackendError, RequestTooLarge, UnknownDocument
from backend.types import DocumentTokens, EngineCounters, Request, SamplingParams
from kvstore.formats import FORMATS, FormatName
from kvstore.store import KVStore
from kvstore.types import PAGE_TOKENS, MemoryCounters
from retrieval.parse import parse_file

SAMPLES = Path(__file__).parents[2] / "samples"
BLOCK = 128
TOKENS: tuple[int, ...] = tuple(place * 7919 % 480 + 3 for place in range(900))
OTHER = TOKENS[::-1]
SINKS = tuple(range(10, 31))
QUESTION = tuple(range(40, 60))
ANSWER = SamplingParams(max_tokens=12, ignore_eos=True, logprobs=5)
EVIDENCE = ((700, 790), (300, 340), (10, 90))

Step = tuple[int | None, float | None, tuple[tuple[int, float], ...]]


@contextmanager
def opened(model: Path, pages: int = 16, **changes: object) -> Iterator[Engine]:
    """An engine whose pool holds one of the documents, not both."""
    config = EngineConfig(
        model=model, precision="float32", block_tokens=BLOCK, host_budget=8 << 20,
        kv_budget=pages * 3 * 2 * 2 * 64 * 10 * 4,
    )  # fmt: skip
    engine = Engine.open(dataclasses.replace(config, **changes))  # type: ignore[arg-type]
    try:
        yield engine
        engine._mail.call(engine._store.check_integrity)
    finally:
        engine.close()


def give(
    engine: Engine, key: str = "d", tokens: tuple[int, ...] = TOKENS, *, chained: bool = False
) -> None:
    """Make a document known and have it read."""
    blocks = engine.split_blocks(len(tokens))
    anchors = tuple((first, first + 1) for first, _ in blocks) if chained else ()
    document = DocumentTokens(key, tokens, blocks, anchors=anchors, sinks=SINKS, owner="o")
    assert engine.read(document).wait(60).status == "done"


def ask(engine: Engine, key: str = "d") -> tuple[list[Step], int]:
    """The steps of the answer, and the document tokens that were read for it."""
    events = list(engine.generate(Request("q", QUESTION, ANSWER, key, EVIDENCE)))
    usage = events[-1].usage
    assert usage is not None and not events[-1].error, events[-1]
    return [(event.token_id, event.logprob, event.best) for event in events], usage.read_tokens


def score(engine: Engine) -> tuple[float, ...]:
    """Log-probabilities of thirty tokens after the evidence."""
    return engine.score(QUESTION, TOKENS[320:350], document_key="d", evidence=EVIDENCE)


def push_out(store: KVStore) -> None:
    """Evict everything, as a block as large as the pool would."""
    store.abandon(store.reserve(store.pool.total * PAGE_TOKENS))


def memory_of(counters: EngineCounters) -> MemoryCounters:
    assert counters.memory is not None
    return counters.memory


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_a_hit_in_host_memory_is_a_miss_to_the_last_bit(
    tiny_llama: Path, form: FormatName, chained: bool
) -> None:
    reading = "chained" if chained else "independent"
    settings = {"kv_format": form, "reading": reading}
    with opened(tiny_llama, **settings) as engine:
        size = engine.kv_page_bytes
    with opened(tiny_llama, kv_budget=16 * size, **settings) as engine:
        give(engine, chained=chained)
        cold, _ = ask(engine)
        give(engine, "other", OTHER, chained=chained)
        kept = memory_of(engine.counters).kept
        assert kept >= 7, "all that the other one's blocks pushed out"
        again, read = ask(engine)
        assert read == 0
        assert again == cold
        assert memory_of(engine.counters).hits >= 4
        assert engine.counters.read_tokens == 2 * len(TOKENS)
        assert engine.counters.lost == {"new": 16}
        assert engine.counters.evicted == engine.counters.dropped["room"]


@pytest.mark.gpu
@pytest.mark.parametrize("form", ["auto", "fp8_token_head"])
def test_a_gpus_pages_come_back_from_pinned_memory(tiny_llama: Path, form: FormatName) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    settings = {"device": "cuda", "kv_format": form, "kv_budget": 32 << 20, "host_budget": 64 << 20}
    with opened(tiny_llama, **settings) as engine:
        give(engine)
        cold, _ = ask(engine)
        for turn in range(2):
            engine._mail.call(lambda: push_out(engine._store))
            again, read = ask(engine)
            assert read == 0
            assert again == cold
            assert memory_of(engine.counters).hits >= 4 * (turn + 1)
        assert engine.counters.read_tokens == len(TOKENS)


@pytest.mark.parametrize("aged", ["bf16", "int8", "fp8_tokens32", "int4"])
def test_aged_pages_answer_a_little_otherwise_and_always_alike(
    tiny_llama: Path, aged: FormatName
) -> None:
    with opened(tiny_llama, aged_format=aged) as engine:
        give(engine)
        cold, _ = ask(engine)
        scores = torch.tensor(score(engine))
        answers = []
        for _ in range(2):
            give(engine, "other", OTHER)
            steps, read = ask(engine)
            assert read == 0
            answers.append(steps)
        assert answers[0] == answers[1]
        assert answers[0] != cold
        aged_scores = torch.tensor(score(engine))
        assert 0 < (aged_scores - scores).abs().mean() < 1
        assert not memory_of(engine.counters).exact
        assert engine.counters.read_tokens == 2 * len(TOKENS)


def test_ageing_holds_more_blocks_in_the_same_memory(tiny_llama: Path) -> None:
    """Ten documents of 15 pages in a pool of 16, and host memory for 45 pages of float32."""
    read = {}
    for aged in (None, "int4"):
        with opened(tiny_llama) as engine:
            host = 45 * engine.kv_page_bytes
        with opened(tiny_llama, host_budget=host, aged_format=aged) as engine:
            for turn in range(2):
                for number in range(10):
                    tokens = TOKENS[number:] + TOKENS[:number]
                    give(engine, f"d{number}", tokens)
                    ask(engine, f"d{number}")
                if turn == 0:
                    first = engine.counters.read_tokens
            read[aged] = engine.counters.read_tokens - first
    assert read[None] == 10 * 900, "in turns, each pushes out the one that is needed next"
    assert read["int4"] == 0


def test_what_makes_no_sense_is_refused_when_the_engine_opens(tiny_llama: Path) -> None:
    for changes, message in (
        ({"aged_format": "int4", "reading": "chained"}, "chained"),
        ({"aged_format": "int8", "kv_format": "int4"}, "not get smaller"),
        ({"aged_format": "int4", "host_budget": 0}, "KV_HOST_MB"),
        ({"host_budget": 100}, "no page"),
    ):
        with pytest.raises(BackendError, match=message), opened(tiny_llama, **changes):
            pass


def test_without_a_setting_there_is_no_host_memory(tiny_llama: Path) -> None:
    with opened(tiny_llama, host_budget=None) as engine:
        assert engine.counters.memory is None
    config = EngineConfig(tiny_llama, host_budget=None, aged_format="int4")
    assert config.resolved_host_budget() > 0


def test_the_share_of_memory_is_a_setting(tiny_llama: Path) -> None:
    usual, small = EngineConfig(tiny_llama), EngineConfig(tiny_llama, kv_share=0.1)
    assert small.resolved_kv_budget() == pytest.approx(usual.resolved_kv_budget() / 4, rel=1e-6)


def test_a_pinned_document_stays_while_others_come_and_go(tiny_llama: Path) -> None:
    with opened(tiny_llama, pages=32, host_budget=0) as engine:
        give(engine, "mine")
        engine.pin("mine", 3600)
        for number in range(4):
            give(engine, f"other{number}", OTHER[number:])
        assert ask(engine, "mine")[1] == 0
        assert engine.counters.evicted > 0 and "pinned" not in engine.counters.dropped
        with pytest.raises(RequestTooLarge, match="pinned documents"):
            engine.pin("other3", 3600)
        engine.unpin("mine")
        engine.pin("other3", 3600)
        with pytest.raises(RequestTooLarge, match="above 0 seconds"):
            engine.pin("other3", 0)
        with pytest.raises(UnknownDocument):
            engine.pin("nobody's", 60)
        engine.unpin("nobody's")


def test_a_pin_keeps_nobody_from_an_answer(tiny_llama: Path) -> None:
    with opened(tiny_llama, pages=12, host_budget=0) as engine:
        give(engine, "mine", TOKENS[: 3 * BLOCK])
        engine.pin("mine", 3600)
        give(engine, "long", OTHER[: 6 * BLOCK])
        events = list(
            engine.generate(Request("q", QUESTION, ANSWER, "long", ((0, 5 * BLOCK), (700, 760))))
        )
        assert not events[-1].error
        assert engine.counters.dropped["pinned"] > 0


@pytest.mark.model
def test_the_default_model_answers_alike_cold_and_from_host_memory(default_model: Path) -> None:
    text = (parse_file(next(SAMPLES.glob("*en*.pdf")), "contract.pdf").text)[:6000]
    settings = {"precision": "auto", "block_tokens": 512, "host_budget": 256 << 20}
    with opened(default_model, kv_budget=256 << 20, **settings) as engine:
        tokens = tuple(engine.tokenizer.encode(text))[: 2 * 512]
        question = tuple(engine.tokenizer.encode("\nWhat is the purchase price? It is"))
        request = Request("q", question, ANSWER, "d", ((900, 1000), (40, 300)))
        blocks = engine.split_blocks(len(tokens))
        engine.read(DocumentTokens("d", tokens, blocks, owner="o"), lazy=True)
        answers = []
        for expected in (1024, 0):
            events = list(engine.generate(request))
            usage = events[-1].usage
            assert usage is not None and not events[-1].error, events[-1]
            assert usage.read_tokens == expected
            answers.append([(event.token_id, event.best) for event in events])
            engine._mail.call(lambda: push_out(engine._store))
        assert memory_of(engine.counters).hits == 2
    assert answers[0] == answers[1]
