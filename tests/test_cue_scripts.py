"""Learning cues: which matter a question asks for, general wording, folds, what is learned."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1]))
fit_judges = importlib.import_module("scripts.fit_judges")
fit_cues = importlib.import_module("scripts.fit_cues")

CLAUSE = (
    'Highlight the parts (if any) of this contract related to "Governing Law" that should be '
    "reviewed by a lawyer. Details: Which state/country's law governs the  contract?"
)


def document(number: int, place: str) -> dict[str, object]:
    law = f"This Agreement is governed by the laws of {place}."
    fees = f"The buyer pays {number} dollars each month."
    text = f"1. Law\n{law}\n\n2. Fees\n{fees}\n\n3. Rest\nDone is done.\n"
    start = text.index(law)
    return {
        "doc_id": f"cuad:{number:03}:{place}Inc_2019_EX",
        "title": "x",
        "text": text,
        "qas": [
            {"question": CLAUSE, "answers": [law], "answer_starts": [start], "is_impossible": False}
        ],
    }


def test_matter_of_each_kind_of_question() -> None:
    name, asks = fit_cues.matter_of(CLAUSE)
    assert name == "Governing Law"
    assert asks[1:] == ("Governing Law", "Which state/country's law governs the contract?")
    merger = 'Consider the Agreement between Parent "A" and Target "B"; Where is the No-Shop Clause'
    assert fit_cues.matter_of(merger) == (
        "Where is the No-Shop Clause",
        ("Where is the No-Shop Clause",),
    )
    assert fit_cues.matter_of("Plain statement.") == ("Plain statement.", ("Plain statement.",))


def test_contracts_of_one_company_share_a_fold() -> None:
    folds = {fit_cues.fold_of(name) for name in ("cuad:1:AcmeInc_2005_EX", "cuad:2:AcmeInc_2016")}
    assert len(folds) == 1
    spread = {fit_cues.fold_of(f"cuad:1:Company{number}_2019") for number in range(60)}
    assert spread == set(range(fit_cues.FOLDS))


def test_learned_cues_are_general_and_tell_the_clause() -> None:
    places = ("Oregon", "Texas", "Ohio", "Maine")
    read = [fit_cues.marked(document(number, place)) for number, place in enumerate(places, 7)]
    (matter,) = fit_cues.matters(read, {"Governing Law": ("Governing Law",)})
    assert matter.cues["govern by"] > 0 > matter.cues["buyer pay"]
    assert not {"oregon", "texa", "of ohio"} & matter.cues.keys()
    assert not [term for term in matter.cues if any(letter.isdigit() for letter in term)]


def test_matter_marked_once_is_not_learned() -> None:
    read = [fit_cues.marked(document(1, "Oregon"))]
    assert fit_cues.matters(read, {"Governing Law": ("law",)}) == []


def test_quote_model_ranks_right_quotes_first() -> None:
    rng = np.random.default_rng(3)
    width = len(fit_judges.QUOTE_FEATURES)
    rows = rng.normal(size=(200, width))
    right = rows[:, 0] + 0.1 * rng.normal(size=200) > 0
    model = fit_judges._regression(rows, right, np.ones(200), fit_judges.QUOTE_FEATURES)
    weights = np.array([model.weights[name] for name in fit_judges.QUOTE_FEATURES])
    assert weights[0] == max(weights)
    assert np.mean((rows @ weights + model.bias > 0) == right) > 0.95
