"""Small question sets of made-up contracts, and a way to run them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval.runs.running import RunRequest, run
from eval.runs.sampling import Wanted

Maker = Callable[..., Path]
_FILLER = (
    "The parties keep each other informed of every circumstance that touches the performance. "
    "Notices are given in writing to the address on the first page of this Agreement. "
)


def contract(number: int, filler: int) -> tuple[str, list[dict[str, Any]]]:
    """The text of a contract with two facts of its own and one question that it leaves open."""
    price, days = f"EUR {number + 1},250.00", f"{30 + number} days"
    text = (
        f"SUPPLY AGREEMENT No. {number}\n\n1. Price\nThe total price of the Goods is {price}.\n\n"
        f"2. Notices\n{_FILLER * filler}\n\n3. Termination\nEither party may terminate this "
        f"Agreement on {days}' written notice.\n"
    )

    def answered(qid: str, question: str, answer: str) -> dict[str, Any]:
        return {
            "qid": qid, "question": question, "answers": [answer],
            "answer_starts": [text.index(answer)], "is_impossible": False, "category": "facts",
        }  # fmt: skip

    return text, [
        answered("price", "What is the total price of the Goods?", price),
        answered("notice", "On how many days' notice may a party terminate this Agreement?", days),
        {
            "qid": "insurance", "question": "Which insurance cover must the carrier of pets hold?",
            "answers": [], "answer_starts": [], "is_impossible": True, "category": "silence",
        },
    ]  # fmt: skip


@pytest.fixture
def question_set(tmp_path: Path) -> Maker:
    """Writes a set of `documents` contracts and gives its path."""

    def make(name: str = "set.jsonl", documents: int = 3, filler: int = 2) -> Path:
        path = tmp_path / name
        lines = []
        for number in range(documents):
            text, qas = contract(number, filler)
            lines.append(
                {
                    "doc_id": f"{path.stem}-{number}", "title": f"Agreement {number}", "lang": "en",
                    "kind": "contract", "text": text, "source": "test", "licence": "CC0",
                    "qas": qas,
                }
            )  # fmt: skip
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return path

    return make


@pytest.fixture
def run_set(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Runs a mode over question sets into `tmp_path / "run"`; gives the summary."""

    def start(mode: str, *data: Path, wanted: Wanted | None = None, **more: Any) -> dict[str, Any]:
        more.setdefault("out", tmp_path / "run")
        request = RunRequest(data=data, mode=mode, wanted=wanted or Wanted(), **more)  # type: ignore[arg-type]
        return run(request, lambda _: None, bar=False)

    return start
