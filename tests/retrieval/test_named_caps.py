"""Of several caps on liability the one that the question names leads."""

from __future__ import annotations

from functools import lru_cache

import pytest

from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.plan import find_evidence
from retrieval.types import Document, DocumentPage

CAPS = """CLOUD TERMS

1. Service. The Provider makes the Cloud Service available to the Customer.
2. Fees. The Customer pays the Fees of USD 40,000 per year, within 30 days of invoice.
3. Confidentiality. Each party keeps the other's information secret.
4. Limitations of Liability.
4.1 General Cap. Each party's entire liability arising out of or related to this Agreement will not
exceed the General Cap.
4.2 Super Cap. For Enhanced Claims, each party's liability will not exceed USD 500,000.
4.3 Exceptions. Section 4.1 does not apply to Uncapped Claims.
4.4 Uncapped Claims means the indemnities and breach of Section 3.
5. Definitions. "General Cap" means amounts paid or payable by the Customer in the 12 months before
the claim. "Enhanced Claims" means breach of data protection.
"""


@lru_cache
def index_of(text: str) -> SearchIndex:
    clauses = outline(text)
    document = Document(text, (DocumentPage(1, 0, len(text)),), "d", "text/plain", "en")
    return SearchIndex.build(text, split(document, clauses), clauses)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What is the general cap?", "General Cap"),
        ("What is the General Cap on liability?", "General Cap"),
        ("What is the general liability cap?", "General Cap"),
        ("What is the super cap?", "USD 500,000"),
        ("What is the super liability cap?", "USD 500,000"),
    ],
)
def test_the_cap_that_the_question_names_leads(question: str, words: str) -> None:
    evidence = find_evidence(index_of(CAPS), question)
    assert evidence.answerable
    best = evidence.sentences[0]
    assert words in CAPS[best.start : best.end]


@pytest.mark.parametrize("question", ["What is the IP cap?", "What is the annual cap?"])
def test_a_cap_that_the_contract_does_not_have_is_refused(question: str) -> None:
    assert not find_evidence(index_of(CAPS), question).answerable


def test_a_sentence_that_only_mentions_the_cap_does_not_lead() -> None:
    text = """SERVICES

1. Liability. The total liability under the general cap is EUR 500,000.
2. Data. The data cap is separate from the general cap and neither reduces the other.
"""
    best = find_evidence(index_of(text), "How high is the general liability cap?").sentences[0]
    assert "EUR 500,000" in text[best.start : best.end]
