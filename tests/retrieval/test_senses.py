"""Wordings that look like an idea and mean another."""

from __future__ import annotations

import pytest

from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.plan import find_evidence
from retrieval.query import read_question
from retrieval.senses import itself, otherwise
from retrieval.types import Document, DocumentPage

INSOLVENT = "the Dealer makes an assignment for the benefit of its creditors"


@pytest.mark.parametrize(
    ("question", "body", "other"),
    [
        ("May the Dealer assign this agreement?", INSOLVENT, True),
        ("Is it assignable?", "assigns its assets for the benefit of creditors", True),
        ("May the Dealer assign this agreement?", f"{INSOLVENT} or assigns this Agreement", False),
        ("May the Dealer assign this agreement?", "No party may assign this Agreement.", False),
        ("What if the Dealer makes an assignment for creditors and is bankrupt?", INSOLVENT, False),
        ("What is the price?", INSOLVENT, False),
    ],
)
def test_who_assigns_for_creditors_transfers_no_contract(
    question: str, body: str, other: bool
) -> None:
    assert otherwise(read_question(question), body) is other


def test_a_clause_speaks_of_transfer_itself_or_not() -> None:
    query = read_question("Is consent needed to assign the contract?")
    assert itself(query, "No party may assign this Agreement without consent.")
    assert not itself(query, f"Consent is needed if {INSOLVENT}.")


def test_the_clause_about_transfer_is_quoted_and_not_the_one_about_insolvency() -> None:
    text = (
        "DEALER AGREEMENT\n\n1. Termination\nHarbour Mills may end this Agreement if the Dealer is "
        f"insolvent, or if {INSOLVENT}.\n\n2. Transfer\nThe Dealer may not assign this Agreement "
        "without consent.\n\n3. Notices\nNotices are in writing.\n"
    )
    clauses = outline(text)
    document = Document(text, (DocumentPage(1, 0, len(text)),), "d", "text/plain", "en")
    index = SearchIndex.build(text, split(document, clauses), clauses)
    evidence = find_evidence(index, "Can the Dealer assign the agreement?")
    quotes = [text[one.start : one.end] for one in evidence.sentences]
    assert "may not assign" in quotes[0]
    assert not any("creditors" in quote for quote in quotes)


def test_where_no_clause_is_about_transfer_the_one_about_insolvency_stays() -> None:
    text = (
        "DEALER AGREEMENT\n\n1. Termination\nHarbour Mills may end this Agreement if the Dealer is "
        f"insolvent, or if {INSOLVENT}.\n\n2. Orders\nOrders need the consent of Harbour Mills.\n"
    )
    clauses = outline(text)
    document = Document(text, (DocumentPage(1, 0, len(text)),), "d", "text/plain", "en")
    index = SearchIndex.build(text, split(document, clauses), clauses)
    evidence = find_evidence(index, "Is consent needed to assign the agreement?")
    assert any("creditors" in text[one.start : one.end] for one in evidence.sentences)
