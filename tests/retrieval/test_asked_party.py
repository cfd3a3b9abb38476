"""What one party is liable for is no answer about the other."""

from __future__ import annotations

import pytest

from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.plan import find_evidence
from retrieval.types import Document, DocumentPage

ONE = """EGG SUPPLY

Between Hollow Farm Ltd ("Supplier") and Quince Bakers Ltd ("Buyer").

1. Goods. The Supplier supplies eggs each week.
2. Price. An egg costs GBP 0.21.
3. Liability. The liability of the Supplier is limited to GBP 12,000 in each year.
4. Ending. Either party may terminate this agreement on four weeks' written notice.
"""
BOTH = ONE.replace(
    "4. Ending.",
    "4. The Buyer's side. The Buyer's liability shall not exceed GBP 3,000.\n5. Ending.",
)
LIABLE = ONE.replace(
    "4. Ending.",
    "4. The Buyer's side. The Buyer shall not be liable for more than GBP 3,000.\n5. Ending.",
)
EVERYBODY = ONE.replace("The liability of the Supplier", "The liability of each party")


def index_of(text: str) -> SearchIndex:
    clauses = outline(text)
    document = Document(text, (DocumentPage(1, 0, len(text)),), "d", "text/plain", "en")
    return SearchIndex.build(text, split(document, clauses), clauses)


@pytest.mark.parametrize(
    ("text", "question", "words"),
    [
        (ONE, "What is the cap on the Supplier's liability?", "GBP 12,000"),
        (ONE, "What is the cap on the Seller's liability?", "GBP 12,000"),
        (BOTH, "What is the cap on the Buyer's liability?", "GBP 3,000"),
        (BOTH, "What is the cap on the Supplier's liability?", "GBP 12,000"),
        (BOTH, "What is the limit of the Buyer's liability?", "GBP 3,000"),
        (LIABLE, "What is the cap on the Buyer's liability?", "GBP 3,000"),
        (LIABLE, "What is the liability of the Buyer?", "GBP 3,000"),
        (LIABLE, "What is the cap on the Supplier's liability?", "GBP 12,000"),
        (
            ONE.replace("Supplier is", "Supplier for claims under this agreement is"),
            "What is the cap on the Supplier's liability?",
            "GBP 12,000",
        ),
    ],
)
def test_the_party_asked_for_leads(text: str, question: str, words: str) -> None:
    evidence = find_evidence(index_of(text), question)
    assert evidence.answerable
    best = evidence.sentences[0]
    assert words in text[best.start : best.end]


@pytest.mark.parametrize(
    "question",
    [
        "What is the cap on the Buyer's liability?",
        "What is the cap on the liability of the Buyer?",
        "How much is the Customer's liability limited to?",
    ],
)
def test_another_partys_cap_is_no_answer(question: str) -> None:
    evidence = find_evidence(index_of(ONE), question)
    assert not evidence.answerable
    assert "GBP 12,000" not in evidence.reason


def test_a_cap_for_everybody_is_the_partys_too() -> None:
    evidence = find_evidence(index_of(EVERYBODY), "What is the cap on the Buyer's liability?")
    assert "another party" not in evidence.reason


@pytest.mark.parametrize("role", ["contractor", "consultant", "provider"])
def test_a_role_that_no_party_has_is_not_refused_as_another_ones(role: str) -> None:
    evidence = find_evidence(index_of(ONE), f"What is the cap on the {role}'s liability?")
    assert "another party" not in evidence.reason
    adviser = ONE.replace("Supplier", "Consultant")
    evidence = find_evidence(index_of(adviser), "What is the contractor's liability?")
    assert "another party" not in evidence.reason
