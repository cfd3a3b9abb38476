"""Learned cues: matters matched by how they are asked for, sentences scored by their wording."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.cue_terms import Wording, cue_sentences
from retrieval.cues import CueModel, Linear, Matter, cue_model, read_cues
from retrieval.errors import RetrievalError
from retrieval.index import SearchIndex
from retrieval.query import read_question
from retrieval.titles import ClauseTitles
from retrieval.types import Document, DocumentPage

TEXT = """SUPPLY AGREEMENT

1. Law
This Agreement is governed by the laws of the State of Oregon.

2. Transfer
Neither party may assign this Agreement without the prior written consent of the other party.

3. Fees
The Buyer shall pay a fee of $500 within thirty (30) days:
(a) for each month; and
(b) for each delivery made on May 5.
"""
JUDGE = Linear(0.0, {"cue": 1.0})


def index(text: str, cues: CueModel | None = None) -> SearchIndex:
    clauses = outline(text)
    document = Document(text, (DocumentPage(1, 0, len(text)),), "x", "text/plain", "en")
    return SearchIndex.build(text, split(document, clauses, max_chars=200), clauses, cues)


def small() -> CueModel:
    law = Matter("law", ("Governing Law",), -2.0, {"govern by": 20.0, "h:law": 5.0})
    transfer = Matter("transfer", ("Anti-Assignment",), -2.0, {"may assign": 20.0, "<money>": -9.0})
    return CueModel([law, transfer], JUDGE, JUDGE)


def test_sentence_offers_its_words_headings_opening_and_shapes() -> None:
    clauses = outline(TEXT)
    document = Document(TEXT, (DocumentPage(1, 0, len(TEXT)),), "x", "text/plain", "en")
    chunks = split(document, clauses)
    found = list(cue_sentences(TEXT, chunks, clauses, ClauseTitles(clauses), Wording()))
    law = next(one for one in found if "governed by" in TEXT[slice(*one.span)])
    assert {"govern by", "state of oregon", "h:law"} <= set(law.terms)
    item = next(one for one in found if TEXT[slice(*one.span)].startswith("(b)"))
    assert {"<date>", "l:buyer shall", "h:fee"} <= set(item.terms)
    assert "<money>" not in item.terms
    assert [one.span for one in found] == sorted(one.span for one in found)


def test_only_known_wording_is_kept() -> None:
    clauses = outline(TEXT)
    document = Document(TEXT, (DocumentPage(1, 0, len(TEXT)),), "x", "text/plain", "en")
    found = cue_sentences(
        TEXT, split(document, clauses), clauses, ClauseTitles(clauses), Wording(["govern by"])
    )
    assert [one.terms for one in found if one.terms] == [("govern by",)]


def test_question_is_matched_to_the_matter_it_asks_for() -> None:
    model = small()
    names = [model.matters[one.place].name for one in model.match(read_question("governing law?"))]
    assert names == ["law"]
    assert model.match(read_question("How tall is the tower?")) == ()
    assert model.match(read_question("")) == ()


def test_scores_of_a_document() -> None:
    built = index(TEXT, small())
    scores = built.cues(read_question("What is the governing law?"))
    assert scores.matter == "law" and 0 < scores.strength <= 1
    place = TEXT.index("This Agreement is governed")
    odds, rank, _ = scores.of((place, place + 40))
    assert rank == 0 and odds == scores.top(1)[0] > 0
    other, later, _ = scores.of((TEXT.index("Neither"), TEXT.index("3. Fees")))
    assert other < odds and later > 0
    unmatched = built.cues(read_question("How tall is the tower?"))
    assert (unmatched.strength, unmatched.model, unmatched.best_chunks(5)) == (0.0, None, {})
    assert unmatched.of((place, place + 40))[0] == 0.0


def test_matched_question_tells_how_likely_its_quotes_answer() -> None:
    from retrieval.ranking import rank_sentences

    built = index(TEXT, small())
    query = read_question("governing law")
    likely = [one.likely for one in rank_sentences(built, query, built.find(query))]
    assert likely and all(one is not None and 0 < one < 1 for one in likely)
    query = read_question("How much is the fee?")
    assert {one.likely for one in rank_sentences(built, query, built.find(query))} == {None}


def test_chinese_document_has_no_cues_and_still_answers() -> None:
    built = index("第一条 法律\n本合同适用中华人民共和国法律。\n", small())
    assert built.cues(read_question("governing law")).strength == 0.0
    assert built.search("governing law")


@pytest.mark.parametrize("text", ["", "\n \f", "..."])
def test_document_without_sentences(text: str) -> None:
    scores = index(text, small()).cues(read_question("governing law"))
    assert scores.top(3) == () or max(scores.top(3)) <= 0
    assert scores.of((0, 1))[0] <= 0.0


def test_index_with_cues_survives_pickling() -> None:
    built = index(TEXT, small())
    again = pickle.loads(pickle.dumps(built))
    query = read_question("governing law")
    assert again.cues(query).top(3) == built.cues(query).top(3)
    assert again.search("governing law") == built.search("governing law")


def test_linear_model_needs_the_features_that_it_names() -> None:
    assert Linear(1.0, {"a": 2.0}).odds({"a": 3.0, "b": 9.0}) == 7.0
    with pytest.raises(KeyError):
        Linear(1.0, {"a": 2.0}).odds({"b": 9.0})


@pytest.mark.parametrize(
    "data",
    [
        {"matters": {}},
        {"quote": {"bias": 0, "weights": {}}, "answer": {"bias": 0, "weights": {}},
         "matters": {"x": {"asks": [], "bias": 0, "cues": {}}}},
    ],
)  # fmt: skip
def test_file_with_other_keys_is_refused(tmp_path: Path, data: object) -> None:
    path = tmp_path / "cues.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(RetrievalError, match=r"cues\.json"):
        read_cues(path)


def test_shipped_cues_are_general_wording() -> None:
    model = cue_model()
    assert len(model.matters) > 60
    for matter in model.matters:
        assert matter.asks and len(matter.cues) <= 400
    digits = [term for term in model.columns if re.search(r"\d", term)]
    assert digits == []
    names = {"microsoft", "playboy", "allied", "ideanom", "azul", "amphenol", "medallia", "soliton"}
    assert not names & {word for term in model.columns for word in re.split("[ :]", term)}


@pytest.mark.parametrize(
    ("question", "matter"),
    [
        ("Which law governs the contract?", "Governing Law"),
        ("Is there a cap on liability?", "Cap on Liability"),
        ("May the receiving party reverse engineer objects that embody confidential information?",
         "Receiving Party shall not reverse engineer any objects which embody Disclosing Party's "
         "Confidential Information."),
    ],
)  # fmt: skip
def test_free_wording_meets_a_learned_matter(question: str, matter: str) -> None:
    model = cue_model()
    assert model.matters[model.match(read_question(question))[0].place].name == matter


def test_scores_are_the_same_in_every_process() -> None:
    program = (
        "from retrieval.chunk import split\n"
        "from retrieval.clauses import outline\n"
        "from retrieval.index import SearchIndex\n"
        "from retrieval.query import read_question\n"
        "from retrieval.types import Document, DocumentPage\n"
        f"text = {TEXT!r}\n"
        "clauses = outline(text)\n"
        "page = DocumentPage(1, 0, len(text))\n"
        "document = Document(text, (page,), 'x', 'text/plain', 'en')\n"
        "index = SearchIndex.build(text, split(document, clauses), clauses)\n"
        "for asked in ('Which law governs the agreement?', 'May a party assign the agreement?'):\n"
        "    print([one.hex() for one in index.cues(read_question(asked)).odds.tolist()])\n"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1
    assert "0x" in printed.pop()
