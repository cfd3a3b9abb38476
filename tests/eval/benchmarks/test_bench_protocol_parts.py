"""`bench protocol`: bounds and their percentiles, arms, documents and loads, figures, tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from app.errors import BadParameter
from backend.engine import Engine
from backend.engine_config import EngineConfig
from eval.benchmarks.engine_documents import require_unique
from eval.benchmarks.engine_settings import EngineChoice
from eval.benchmarks.mixed.load import LoadShape
from eval.benchmarks.mixed.types import Kind
from eval.benchmarks.protocol.arms import ARMS, arm_config, choose_arms
from eval.benchmarks.protocol.bounds import Bound, middle, percentile, ratio
from eval.benchmarks.protocol.documents import draw_document, plain_tokens
from eval.benchmarks.protocol.load import LoadMaker
from eval.benchmarks.protocol.summary import summarise
from eval.benchmarks.protocol.tables import show_protocol
from eval.benchmarks.protocol.types import CellRecord, RequestRecord, Status
from eval.errors import EvalError
from kvstore.formats import page_format
from kvstore.types import PAGE_TOKENS

BLOCK = 64
SHAPE = LoadShape(
    requests=20,
    lengths=(128, 256, 512),
    long_share=0.2,
    concurrency=4,
    rounds=2,
    hit_share=0.5,
    output_tokens=2,
    seed=3,
)
VALUES = st.lists(st.builds(Bound, st.floats(0.1, 1e6), st.booleans()), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def engine(tiny_llama: Path) -> Iterator[Engine]:
    engine = Engine.open(
        EngineConfig(model=tiny_llama, precision="float32", block_tokens=BLOCK, kv_budget=8 << 20)
    )
    yield engine
    engine.close()


@given(values=VALUES, more=st.lists(st.floats(0, 1e6), min_size=12, max_size=12),
       share=st.sampled_from((0.0, 50.0, 90.0, 95.0, 100.0)))  # fmt: skip
def test_a_percentile_says_whether_it_could_be_larger(
    values: list[Bound], more: list[float], share: float
) -> None:
    found = percentile(values, share)
    assert found is not None
    assert found.value == pytest.approx(np.percentile([one.value for one in values], share))
    # The true values of those that are bounds: never smaller.
    true = [one.value + extra * one.at_least for one, extra in zip(values, more, strict=False)]
    real = float(np.percentile(true, share))
    assert real >= found.value * (1 - 1e-9)
    if not found.at_least:
        assert real == pytest.approx(found.value)


def test_a_percentile_below_the_bounds_is_exact_and_one_among_them_is_not() -> None:
    values = [Bound(1.0), Bound(2.0), Bound(3.0), Bound(9.0, True), Bound(9.0, True)]
    assert middle(values) == Bound(3.0)
    assert percentile(values, 95) == Bound(9.0, True)
    # A bound below: the true middle may be another.
    assert middle([Bound(0.5, True), *values[:3]]) == Bound(1.5, True)
    assert percentile([], 50) is None


def test_a_ratio_to_a_bound_says_nothing() -> None:
    assert ratio(Bound(6.0, True), Bound(2.0)) == Bound(3.0, True)
    assert ratio(Bound(6.0), Bound(2.0)) == Bound(3.0)
    assert ratio(Bound(6.0), Bound(2.0, True)) is None
    assert ratio(None, Bound(2.0)) is ratio(Bound(6.0), None) is None


def test_arms_are_chosen_by_name_and_cell() -> None:
    assert [arm.name for arm in choose_arms(None)] == list(ARMS)
    dense, full = choose_arms("dense:mixed, full")[::-1]
    assert (full.name, full.cells) == ("full", ("cold", "mixed"))
    assert (dense.name, dense.cells) == ("dense", ("mixed",))
    assert choose_arms("dense:mixed,dense:cold")[0].cells == ("cold", "mixed")
    assert not ARMS["dense"].reuse and ARMS["dense"].changes == {"first_come": True}
    for wrong in ("everything", "full:warm", "", "full,,dense"):
        with pytest.raises(BadParameter):
            choose_arms(wrong)


def test_an_arm_changes_the_engine_it_is_measured_in(tiny_llama: Path) -> None:
    config = EngineConfig(model=tiny_llama, precision="float32", kv_budget=8 << 20)
    changed = {name: arm_config(arm, config, EngineChoice(), 4096) for name, arm in ARMS.items()}
    assert changed["full"] == changed["evidence_last"] == changed["no_reuse"] == config
    assert changed["first_come"].first_come and changed["dense"].first_come
    assert changed["block_by_block"].read_tokens == 1
    assert changed["no_guessing"].guessed_tokens == 0
    # On a GPU dense reading gets the memory that a large pool would take.
    gpu = EngineConfig(model=tiny_llama, device="cuda", kv_budget=8 << 40)
    budget = arm_config(ARMS["dense"], gpu, EngineChoice(), 4096).kv_budget
    assert arm_config(ARMS["full"], gpu, EngineChoice(), 4096).kv_budget == 8 << 40
    assert arm_config(ARMS["dense"], gpu, EngineChoice(kv_budget_mb=1), 4096).kv_budget == 8 << 40
    page = 3 * 2 * 2 * page_format("auto", torch.bfloat16).cell(10).bytes
    pages = 4096 // PAGE_TOKENS
    assert pages < 0.9 * budget / page < 3 * pages


def test_documents_are_of_plain_tokens_and_share_no_block(engine: Engine) -> None:
    vocabulary = plain_tokens(engine)
    assert not set(engine.tokenizer.control_ids.values()) & set(vocabulary.tolist())
    made = [
        draw_document(engine, vocabulary, f"d{number}", 4 * BLOCK, number=number, seed=0)
        for number in range(50)
    ]
    require_unique(made)
    assert all(document.tokens == 4 * BLOCK for document in made)
    assert set().union(*(document.ids for document in made)) <= set(vocabulary.tolist())
    same = draw_document(engine, vocabulary, "d7", 4 * BLOCK, number=7, seed=0)
    assert same == made[7]
    other = draw_document(engine, vocabulary, "d7", 4 * BLOCK, number=7, seed=1)
    # The blocks' numbers are written in their first four tokens, from the vocabulary alone.
    starts = [tuple(one.ids[at : at + 4]) for one in made for at in range(0, 4 * BLOCK, BLOCK)]
    assert len(set(starts)) == len(starts)
    assert other.ids != same.ids and tuple(other.ids[:4]) == tuple(same.ids[:4])
    with pytest.raises(EvalError, match="fewer rounds"):
        draw_document(engine, vocabulary[:3], "d", BLOCK, number=1, seed=0)


def test_half_of_the_mixed_load_asks_anew_about_documents_of_the_cold_one(
    engine: Engine,
) -> None:
    load = LoadMaker(engine, SHAPE, ARMS["full"], 100).round(0)
    assert Counter(one.tokens for one in load.cold) == {128: 8, 256: 8, 512: 4}
    assert Counter(one.tokens for one in load.mixed) == Counter(one.tokens for one in load.cold)
    assert Counter(one.kind for one in load.cold) == {"short": 16, "long": 4}
    again = [one for one in load.mixed if one.again]
    assert len(again) == len(load.before) == 10
    keys = {one.given.key: one for one in load.cold}
    assert {one.given.key for one in again} == {one.given.key for one in load.before}
    for one in again:
        before = keys[one.given.key]
        assert one.given is before.given and not one.kept
        assert one.questions[0].prompt_ids != before.questions[0].prompt_ids
    ids = [question.request_id for one in (*load.cold, *load.mixed) for question in one.questions]
    assert len(set(ids)) == len(ids) == 120
    for one in load.cold:
        for question in one.questions:
            held = sum(last - first for first, last in question.evidence)
            assert held == min(100, one.tokens)
    other = LoadMaker(engine, SHAPE, ARMS["full"], 100).round(1)
    assert not {tuple(one.given.token_ids[:4]) for one in load.cold} & {
        tuple(one.given.token_ids[:4]) for one in other.cold
    }


def test_a_dense_arm_has_the_same_documents_as_one_block_and_keeps_none(engine: Engine) -> None:
    load = LoadMaker(engine, SHAPE, ARMS["full"], 100).round(0)
    dense = LoadMaker(engine, SHAPE, ARMS["dense"], 100).round(0)
    assert dense.before == ()
    for one, whole in zip((*load.cold, *load.mixed), (*dense.cold, *dense.mixed), strict=True):
        assert one.given.token_ids == whole.given.token_ids and one.again == whole.again
        assert whole.given.blocks == ((0, one.tokens),) == whole.questions[0].evidence


def record(
    name: str, kind: Kind, any_ms: float, *, at_least: bool = False, status: Status = "done",
    reused: int | None = 0,
) -> RequestRecord:  # fmt: skip
    times = {metric: Bound(any_ms, at_least) for metric in ("ttft_any", "ttft_grounded")}
    return RequestRecord(
        name, kind, 1000, False, status, times=times, computed=1000 - (reused or 0), reused=reused
    )


def cell(arm: str, number: int, *records: RequestRecord, name: str = "mixed") -> CellRecord:
    counters = {"read_tokens": sum(one.computed for one in records), "evicted": 0}
    return CellRecord(arm, name, number, 2.0, False, 4, counters, records)


def test_ratios_are_taken_within_a_round_and_failures_have_no_time() -> None:
    cells = []
    for number, scale in enumerate((1.0, 2.0, 4.0), 1):
        failed = record("f", "long", 9e9, status="failed", reused=None)
        unsent = RequestRecord("n", "long", 1000, False, "not sent")
        own = [record("a", "long", 10 * scale), record("b", "short", 5 * scale, reused=500)]
        cells.append(cell("full", number, *own, failed, unsent))
        slow = record("a", "long", 200 * scale, at_least=True, status="unfinished")
        cells.append(cell("dense", number, slow, record("b", "short", 50 * scale)))
    found = summarise(cells)
    arms, headline = found["arms"], found["dense_to_full"]
    assert isinstance(arms, dict) and isinstance(headline, dict)
    long = arms["full"]["mixed"]["kinds"]["long"]
    assert (long["requests"], long["done"], long["failed"], long["not_sent"]) == (9, 3, 3, 3)
    assert long["metrics"]["ttft_any"]["p50"] == {"value": 20.0, "at_least": False}
    assert long["metrics"]["ttft_warm"]["p50"] is None
    assert arms["full"]["mixed"]["reuse_rate"] == 0.25
    assert arms["full"]["mixed"]["label"] == "mixed"
    assert headline["mixed"]["ttft_any"]["p50"] == {"value": 20.0, "at_least": True}
    ratios = found["ratios"]
    assert isinstance(ratios, dict)
    assert ratios["dense"]["mixed"]["short"]["ttft_any"]["p95"] == {
        "value": 10.0, "at_least": False,
    }  # fmt: skip
    text = show_protocol({"results": found | {"failures": {"first_come": "no memory"}}})
    assert "≥400" in text and "≥20.00" in text and "first_come was not" in text


def test_what_is_read_twice_is_counted() -> None:
    one = RequestRecord("a", "long", 1000, True, "done", computed=1200, reused=300)
    assert one.read_again == 500
    assert RequestRecord("a", "long", 1000, False, "done", computed=1000).read_again == 0
    assert one.fields()["read_again_tokens"] == 500


def test_a_cold_cell_that_met_pages_is_not_called_cold() -> None:
    met = cell("full", 1, record("a", "short", 1.0, reused=10), name="cold")
    assert met.label == "mixed"
    assert cell("full", 1, record("a", "short", 1.0), name="cold").label == "cold"
    unread = RequestRecord("a", "short", 1000, False, "unfinished", computed=500)
    assert unread.read_again == 0
    assert cell("full", 1, unread).label == "nothing read"
    # How much of it was there is known of those that were read.
    half = record("b", "short", 1.0, reused=500)
    assert cell("full", 1, unread, half).reuse_rate == 0.5
    text = show_protocol({"results": summarise([met])})
    assert "full, cold: measured as mixed" in text
