"""What KV formats cost: the figures of a gold answer by its tokens, formats seen through one pool,
and the table over them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.prompt import PromptPlan, plan_prompt
from app.settings import load_settings
from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.errors import BackendError
from backend.loader import load_checkpoint
from backend.scoring import Scores
from eval.datasets import open_dataset
from eval.kv_formats import Choices, Figure, Row, rows, summary
from eval.runs import likelihood
from eval.runs.engine_answers import EngineAnswerer
from eval.runs.likelihood import GoldScore, gold_score
from eval.runs.sampling import Wanted
from eval.runs.switches import parse_switches
from eval.types import Question

GOLD = "Under Section 4.2, EUR 1,250.00 is due within thirty (30) days of 1 March 2024."


class Teller:
    """An engine whose greedy choice differs from the gold text at some characters."""

    def __init__(self, model: Path, wrong: Sequence[int]) -> None:
        self.tokenizer = load_checkpoint(model).tokenizer
        self._wrong = wrong

    def score(self, prompt: Sequence[int], tokens: Sequence[int], **_: object) -> Scores:
        spans = self.tokenizer.encode_with_spans(GOLD)[1][: len(tokens)]
        return Scores((-0.5, not any(a <= at < b for at in self._wrong)) for a, b in spans)


def _score(model: Path, *wrong: int, answer: str = GOLD) -> GoldScore:
    engine = cast(Engine, Teller(model, wrong))
    plan = plan_prompt(engine.tokenizer, "When is what due?", "en", ())
    score = gold_score(engine, plan, Question("q", "When is what due?", answers=(answer,)))
    assert score is not None
    return score


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ("4.2", "clause"),
        ("2, EUR", "clause"),
        ("EUR", "number"),
        ("00 is", "number"),
        ("days", "number"),
        ("March", "date"),
        ("24.", "date"),
        ("due", None),
    ],
)
def test_a_figure_is_right_when_all_its_tokens_are(
    tiny_llama: Path, wrong: str, kind: str | None
) -> None:
    score = _score(tiny_llama, GOLD.index(wrong))
    assert [f.kind for f in score.figures] == ["clause", "number", "number", "date"]
    assert [f.kind for f in score.figures if not f.right] == ([kind] if kind else [])
    assert score.nll == 0.5


def test_a_figure_behind_the_cut_is_not_counted(
    tiny_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans = load_checkpoint(tiny_llama).tokenizer.encode_with_spans(GOLD)[1]
    for last in ("days", "day"):
        end = GOLD.index(last) + len(last)
        cut = next(number for number, span in enumerate(spans, 1) if span[1] >= end)
        monkeypatch.setattr(likelihood, "ANSWER_TOKENS", cut)
        kinds = [figure.kind for figure in _score(tiny_llama).figures]
        inside = spans[cut - 1][1] >= GOLD.index("days") + 4
        assert kinds == ["clause", "number", "number"][: 3 if inside else 2]


def test_no_gold_answer_and_an_engine_that_tells_no_choice(tiny_llama: Path) -> None:
    engine = Teller(tiny_llama, ())
    plan = cast(PromptPlan, SimpleNamespace(prompt_ids=(1,), document_key=None, evidence=(),
                                            sink_len=0))  # fmt: skip
    silent = Question("q", "?", is_impossible=True)
    assert gold_score(cast(Engine, engine), plan, silent) is None
    plain = SimpleNamespace(tokenizer=engine.tokenizer, score=lambda *_, **__: (-0.5,))
    with pytest.raises(BackendError, match="would have chosen"):
        gold_score(cast(Engine, plain), plan, Question("q", "?", answers=("5 days",)))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    lines = []
    for number in range(2):
        price, days = f"EUR {number + 1},250.00", f"{30 + number} days"
        filler = "The parties keep each other informed of all that touches the performance. " * 20
        text = (
            f"SUPPLY AGREEMENT No. {number}\n\n1. Price\nThe total price of the Goods is {price}."
            f"\n\n2. Notices\n{filler}\n\n3. Termination\nEither party may terminate this "
            f"Agreement on {days}' written notice.\n"
        )
        asked = {
            "price": ("What is the total price of the Goods?", price),
            "notice": ("On how many days' notice may a party terminate?", days),
        }
        qas: list[dict[str, Any]] = [
            {"qid": f"{name}-{number}", "question": question, "answers": [answer],
             "answer_starts": [text.index(answer)], "is_impossible": False}
            for name, (question, answer) in asked.items()
        ]  # fmt: skip
        qas.append({"qid": f"none-{number}", "question": "Who insures the cargo?", "answers": [],
                    "answer_starts": [], "is_impossible": True})  # fmt: skip
        lines.append({"doc_id": f"d{number}", "title": "t", "lang": "en", "kind": "contract",
                      "text": text, "source": "test", "licence": "CC0", "qas": qas})  # fmt: skip
    path = tmp_path / "set.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_formats_seen_through_one_pool_are_those_of_their_own(tiny_llama: Path, data: Path) -> None:
    config = EngineConfig(tiny_llama, precision="float32", block_tokens=64)
    choices = Choices([data], Wanted(only="answerable"), ["int4", "int8"], ["reinject=nothing"])
    with closing(Engine.open(config)) as engine:
        found = list(rows(engine, choices))
    assert sorted(row.question for row in found) == ["notice-0", "notice-1", "price-0", "price-1"]
    for row in found:
        assert set(row.nll) == {"auto", "int4", "int8"} and len(set(row.nll.values())) == 3
        assert [figure.kind for figure in row.figures] == ["number"]
    own = EngineConfig(tiny_llama, precision="float32", block_tokens=64, kv_format="int4")
    with closing(Engine.open(own)) as engine:
        switches = parse_switches("evidence", ["phrase=off", "reinject=nothing"])
        answerer = EngineAnswerer(engine, "evidence", switches, 0, load_settings().chunk_chars)
        for document in open_dataset(data):
            with answerer.opened(document) as session:
                for question in document.questions[:2]:
                    score = gold_score(engine, session.plan(question), question)
                    (row,) = (one for one in found if one.question == question.qid)
                    assert score is not None and score.nll == row.nll["int4"]
                    assert [f.right for f in score.figures] == [
                        figure.right["int4"] for figure in row.figures
                    ]


def test_the_dtype_of_the_pool_is_not_measured_twice(
    tiny_llama: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = EngineConfig(tiny_llama, precision="bfloat16", block_tokens=64)
    with closing(Engine.open(config)) as engine:
        asked: list[object] = []
        real = engine.score

        def counted(*given: Any, **more: Any) -> Any:
            asked.append(given)
            return real(*given, **more)

        monkeypatch.setattr(engine, "score", counted)
        wanted = Wanted(limit=1, only="answerable")
        found = list(rows(engine, Choices([data], wanted, ["bf16", "int8"])))
    assert len(asked) == 2
    assert found[0].nll["bf16"] == found[0].nll["auto"]


def _row(number: int, lost: bool, won: bool) -> Row:
    figures = (
        Figure("number", {"auto": True, "int8": not lost}),
        Figure("date", {"auto": False, "int8": won}),
    )
    return Row(f"q{number}", "set", f"d{number}", {"auto": 1.0, "int8": 1.25}, figures)


def test_the_table_counts_figures_and_takes_differences_in_pairs() -> None:
    done = [_row(number, number < 2, number < 1) for number in range(10)]
    # An answer without figures counts for the likelihood alone.
    done.append(Row("q", "set", "d", {"auto": 1.0, "int8": 1.25}, ()))
    table = cast(dict[str, Any], summary(done, 0))
    assert table["auto"]["figures_right"]["mean"] == 0.5
    assert table["auto"]["figures_to_auto"]["mean"] == table["auto"]["to_auto"]["mean"] == 0.0
    packed = table["int8"]
    assert packed["nll"] == {"n": 11, "mean": 1.25, "low": 1.25, "high": 1.25}
    assert packed["to_auto"]["mean"] == 0.25
    assert packed["figures_right"]["n"] == 20
    assert math.isclose(packed["figures_right"]["mean"], 0.45)
    assert math.isclose(packed["figures_to_auto"]["mean"], -0.05)
    assert packed["figures_to_auto"]["low"] < -0.05 < packed["figures_to_auto"]["high"]
    assert (packed["figures_lost"], packed["figures_won"]) == (2, 1)
    assert summary([], 0) == {}
