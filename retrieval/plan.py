"""Evidence for one question: chunks, candidate quotes, and whether the document answers it.

Refusal is decided here, from what was found: the share of the question's telling words in the best
evidence, words that stand nowhere in the document, a clause that does not exist, a named thing of
which the document knows only others, a kind of fact that the best sentence does not hold. It does
not know the model and never asks it.
"""

from __future__ import annotations

from retrieval.absent_sums import absent_sum, is_told, telling_first
from retrieval.asked_party import of_another
from retrieval.identifiers import absent_things
from retrieval.index import SearchIndex
from retrieval.party_roles import absent_role, blank_role, is_introduction
from retrieval.query import read_question
from retrieval.ranking import rank_sentences
from retrieval.support import judge
from retrieval.types import Evidence

_ABSENT_SUPPORT = 0.2
"""The most support a document has that is silent on something the question names exactly."""
_TOLD_SUPPORT = 0.6
"""Support of a sentence that tells the sum asked for, in words that share little with it."""


def find_evidence(index: SearchIndex, question: str, *, limit: int = 10) -> Evidence:
    """What `index` holds for `question`; at most `limit` chunks. Never raises for odd questions:
    without evidence `answerable` is False and `reason` says why."""
    query = read_question(question)
    articles = index.article_scores(query)
    worded = index.worded(query)
    hits = index.find(worded, limit, articles)
    sentences = (
        rank_sentences(index, worded, hits)
        if articles is None
        else index.article_passages(articles)
    )
    support, answerable, reason = judge(index, query, hits, sentences)
    told = telling_first(index, query, sentences)
    if answerable:
        sentences = told
    elif is_told(index, query, told):
        sentences, support, answerable, reason = told, max(support, _TOLD_SUPPORT), True, ""
    named = is_introduction(index, query, sentences)
    absent = absent_things(index.text, question) if sentences and not named else ()
    if not absent and (role := absent_role(index, query, sentences)):
        absent = (role,)
    if absent:
        answerable, reason = False, f"the document never speaks of {', '.join(absent)}"
        support = min(support, _ABSENT_SUPPORT)
    elif blank := blank_role(index, query):
        answerable, reason = False, f"the document has a line for {blank} that is not filled in"
        support = min(support, _ABSENT_SUPPORT)
    elif role := of_another(index, query, sentences):
        answerable, reason = False, f"the closest clause speaks of another party than the {role}"
        support = min(support, _ABSENT_SUPPORT)
    elif answerable and not named and (sum_of := absent_sum(index, query, sentences)):
        answerable, reason = False, f"the closest clauses name another sum than the {sum_of}"
        support = min(support, _ABSENT_SUPPORT)
    return Evidence(question, query.language, hits, sentences, support, answerable, reason, absent)
