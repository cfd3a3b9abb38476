"""Search over small contracts: the faults that users of other systems met (B11 to B14)."""

from __future__ import annotations

import pickle

import pytest

from retrieval.index import SearchIndex
from retrieval.types import Chunk


def build(*parts: str) -> SearchIndex:
    text = "\n".join(parts)
    chunks = []
    start = 0
    for index, part in enumerate(parts):
        end = min(start + len(part) + 1, len(text))
        chunks.append(Chunk(index, start, end, None, "", 1, 1))
        start = end
    return SearchIndex.build(text, chunks)


def found(index: SearchIndex, question: str) -> list[int]:
    return [hit.chunk.index for hit in index.search(question)]


def test_term_in_half_or_all_of_the_chunks_still_matches() -> None:
    two = build("payment term is thirty days", "governing law is Hong Kong")
    assert found(two, "governing law") == [1]
    assert all(hit.score > 0 for hit in two.search("governing law"))
    four = build("the supplier ships", "the supplier pays", "supplier warrants", "rent is due")
    assert sorted(found(four, "supplier")) == [0, 1, 2]
    assert found(build("the supplier ships goods"), "supplier") == [0]


ZH = (
    "甲方应于收到发票后三十日内付款。",
    "本合同适用中华人民共和国法律。",
    "违约金为合同总价的百分之五，税款另计。",
)


@pytest.mark.parametrize(
    "question", ["违约金是多少", "税", "SLA 违约金", "違約金", "liquidated damages"]
)
def test_chinese_clause_is_found_by_word_character_and_script(question: str) -> None:
    hits = build(*ZH).search(question)
    assert hits[0].chunk.index == 2
    assert all(hit.score > 0 and hit.matched for hit in hits)


def test_nothing_in_common_means_no_hits() -> None:
    assert build(*ZH).search("dinosaur") == ()
    assert build(*ZH).search("税")[0].chunk.index == 2
    assert len(build(*ZH).search("税")) == 1


@pytest.mark.parametrize("text", ["", " \f \n", "。。。---"])
def test_text_without_words_is_searchable_and_empty(text: str) -> None:
    chunks = [Chunk(0, 0, len(text), None, "", 1, 1)] if text else []
    assert SearchIndex.build(text, chunks).search("付款 payment") == ()


@pytest.mark.parametrize("question", ["？？", "the of", "", "   "])
def test_question_without_content_finds_nothing(question: str) -> None:
    assert build(*ZH).search(question) == ()


AMOUNTS = (
    "Fee one is USD 1,500,000.00 in all",
    "Fee two is USD 500,000.00 in all",
    "价款为人民币１５０万元整",
    "第１２条 另行约定",
    "Item costs €9,90 each",
    "Item costs €19,90 each",
    "Signed 2024-03-01 in Paris",
)


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("1500000", {0, 2}),
        ("What costs $1.5m?", {0, 2}),
        ("150万元", {0, 2}),
        ("一百五十万元", {0, 2}),
        ("第12条", {3}),
        ("第十二条", {3}),
        ("9,90", {4}),
        ("1 March 2024", {6}),
        ("2024年3月1日", {6}),
    ],
)
def test_figures_meet_in_any_spelling(question: str, best: set[int]) -> None:
    ranked = found(build(*AMOUNTS), question)
    assert set(ranked[: len(best)]) == best


def test_small_decimal_ranks_above_longer_one() -> None:
    ranked = found(build(*AMOUNTS), "9,90")
    assert ranked[0] == 4


def test_index_survives_pickling() -> None:
    index = build(*ZH)
    again = pickle.loads(pickle.dumps(index))
    assert again.search("违约金") == index.search("违约金")


@pytest.mark.parametrize(
    ("title", "clause", "question"),
    [
        ("MASTER SUPPLY AGREEMENT", "The document fee is due.", "What is the document name?"),
        ("设备租赁协议", "乙方应在合同期内付款。", "合同名称是什么？"),
    ],
)
def test_a_title_that_shares_no_word_with_the_question_is_found(
    title: str, clause: str, question: str
) -> None:
    assert 0 in found(build(title, clause, clause), question)
