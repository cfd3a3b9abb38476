"""The reviewed vocabulary and the word lists: well-formed, and matched by stem and character."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval.errors import RetrievalError
from retrieval.folding import fold
from retrieval.query import read_question
from retrieval.stems import words
from retrieval.vocabulary import read_vocabulary, vocabulary
from retrieval.wordlists import word_list


def stated(text: str) -> set[str]:
    folded = fold(text)
    return {m.concept.name for m in vocabulary().in_documents.mentions(folded, words(folded))}


def test_every_concept_has_a_wording_and_is_found_by_it() -> None:
    for concept in vocabulary().concepts:
        assert concept.phrases or concept.cues
        for phrase in concept.phrases:
            assert concept.name in stated(phrase), (concept.name, phrase)


@pytest.mark.parametrize(
    ("english", "chinese", "concept"),
    [
        ("The agreement was terminated", "解除合同", "termination"),
        ("the aggregate liability shall not exceed", "责任上限", "liability_cap"),
        ("governed by the laws of the State", "适用法律", "governing_law"),
        ("liquidated damages", "违约金", "liquidated_damages"),
        ("force majeure", "不可抗力", "force_majeure"),
    ],
)
def test_both_languages_meet_in_one_concept(english: str, chinese: str, concept: str) -> None:
    assert concept in stated(english)
    assert concept in stated(chinese)


def test_what_is_asked_of_the_agreement_may_be_asked_of_the_contract() -> None:
    for question in ("How long does the contract last?", "How long does the agreement last?"):
        assert "term" in {concept.name for concept in read_question(question).concepts}


def test_a_lease_without_a_rent_does_not_speak_of_one() -> None:
    assert "rent" not in stated("The tenant keeps the premises clean. 承租人保持房屋清洁")
    assert "rent" in stated("The tenant pays a rent") and "rent" in stated("租金每月五百元")


def test_cues_count_in_questions_only() -> None:
    assert "termination" not in stated("walk away")
    asked = read_question("Can we walk away from the deal?")
    assert "termination_for_convenience" in {concept.name for concept in asked.concepts}


@pytest.mark.parametrize(
    ("question", "concept"),
    [
        ("Can we get out of the deal?", "termination"),
        ("What if the firm changes hands?", "change_of_control"),
        ("May the fees go up?", "price_change"),
        ("Could they farm out the job?", "subcontract"),
        ("Must they let us know first?", "notice"),
        ("What if the pump breaks down?", "breakdown"),
        ("Do we get our money back?", "refund"),
        ("May they bad-mouth us?", "disparagement"),
        ("May I underlet the flat?", "subletting"),
        ("Is there any money off for large orders?", "discount"),
        ("Can the tenant keep a dog?", "pets"),
        ("Which of the papers wins if they contradict each other?", "order_of_precedence"),
        ("Can the loan be paid off early?", "early_repayment"),
        ("What if there is an outage?", "service_level"),
        ("整个合同一共多少钱？", "total_price"),
        ("房子能再租给别人吗？", "subletting"),
        ("多买能打折吗？", "discount"),
        ("交货日期是哪一天？", "delivery"),
        ("裁员补偿几个月工资？", "severance"),
        ("系统宕机怎么赔？", "service_level"),
        ("能把活包给别人吗？", "subcontract"),
        ("要提前多久打招呼？", "notice"),
        ("公司被收购了怎么办？", "change_of_control"),
        ("对方来挖人怎么办？", "solicit_employees"),
        ("设备坏了怎么办？", "breakdown"),
    ],
)
def test_everyday_words_name_a_concept(question: str, concept: str) -> None:
    assert concept in {found.name for found in read_question(question).concepts}


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How large is the deposit?", "amount"),
        ("What would it cost to leave?", "amount"),
        ("By how much may fees rise?", "percent"),
        ("迟到要罚多少？", "amount"),
        ("每天用多少度电？", "count"),
    ],
)
def test_the_kind_of_fact_asked_for(question: str, kind: str) -> None:
    assert kind in read_question(question).asked


def test_names_tell_more_than_verbs() -> None:
    query = read_question("When will Marlow be painted by one firm?")
    weights = {unit.surface: unit.weight for unit in query.units}
    assert query.names == ("marlow",)
    assert weights["marlow"] > weights["painted"]
    # "one" is no figure here, "two" is.
    assert query.figures == ()
    assert read_question("Are two firms named?").figures == ("#2",)
    assert read_question("What Does Marlow Pay?").names == ()


def test_question_parts() -> None:
    query = read_question(
        'Highlight the parts (if any) of this contract related to "Cap on Liability" that should '
        "be reviewed by a lawyer. Details: Does the contract include a cap?"
    )
    assert query.presence
    assert [concept.name for concept in query.main] == ["liability_cap"]
    assert query.terms["highlight"] < 0.3 < query.terms["cap"]
    scene = read_question('Consider the Agreement between "Zebra Inc." and "Yak"; what is the fee?')
    assert scene.terms["zebra"] < 0.3
    assert read_question("第12.3条规定了什么？").clauses == ("§12.3",)
    assert read_question("How long is the term?").asked == ("duration",)


def test_unknown_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "words.toml"
    path.write_text('[x]\nen = ["a"]\nfr = ["b"]\n', encoding="utf-8")
    with pytest.raises(RetrievalError, match="fr"):
        read_vocabulary(path)


def test_word_lists_are_lower_case_words() -> None:
    for name in (
        "english_stop",
        "asking_english",
        "light_english",
        "abbreviations",
        "linking_english",
        "uncounted_english",
    ):
        found = word_list(name)
        assert found
        assert all(word == word.lower() for word in found)
    assert "terminate" not in word_list("light_english")
