"""`bench interference`: its loads, and that serving in order of arrival makes questions wait."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from backend.engine import Engine
from backend.engine_config import EngineConfig
from eval.benchmarks.documents import load_pieces, sample_files
from eval.benchmarks.engine_documents import stretch_for
from eval.benchmarks.interference import Bench, InterferencePlan, Load, summary

PLAN = InterferencePlan(
    short=256, long=32768, rate=40.0, questions=5, answer_tokens=2, short_documents=2, rounds=1,
    evidence=64,
)  # fmt: skip


def bench(model: Path, *, first_come: bool) -> tuple[Engine, Bench]:
    engine = Engine.open(
        EngineConfig(
            model=model,
            precision="float32",
            block_tokens=256,
            kv_budget=256 << 20,
            first_come=first_come,
        )
    )
    pieces = load_pieces(sample_files(), stretch=stretch_for(256))
    return engine, Bench(engine, PLAN, pieces, 1 + first_come)


def test_questions_wait_for_one_block_in_turns_and_for_all_of_them_in_order_of_arrival(
    tiny_llama: Path,
) -> None:
    engine, fair = bench(tiny_llama, first_come=False)
    with closing(engine):
        alone, reading, beside = fair.alone(), fair.read_alone(), fair.together()
    assert len(alone.ttft_ms) == 5 and alone.read_s == 0
    assert reading.read_s > 0 and not reading.ttft_ms
    engine, strict = bench(tiny_llama, first_come=True)
    with closing(engine):
        behind = strict.together()
    # The first question comes with the document: it waits for a block, or for all 128.
    assert max(beside.ttft_ms) < 0.5 * 1000 * beside.read_s
    assert max(behind.ttft_ms) > 0.5 * 1000 * behind.read_s


def test_the_summary_takes_ratios_within_a_round() -> None:
    rounds = [
        {
            "alone": Load((100.0 * scale,)).fields(),
            "read_alone": Load((), 10.0 * scale).fields(),
            "beside": Load((150.0 * scale,), 12.0 * scale).fields(),
            "first_come": Load((3000.0 * scale,), 10.0).fields(),
        }
        for scale in (1.0, 2.0, 3.0)
    ]
    found = summary(rounds, blocks=100)
    assert found["alone_p95_ms"] == 200.0 and found["block_ms"] == 200.0
    assert found["first_come_over_beside"] == pytest.approx(20.0)
    assert found["reading_slowed"] == pytest.approx(0.2)
    assert found["allowed_p95_ms"] == pytest.approx(2 * 200.0 + 200.0)
