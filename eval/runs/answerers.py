"""What makes replies: one answerer a mode, one session a document. Here the one without a model.

A session is opened, asked some questions and closed, so that one document at a time is in memory.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from app.answer import wording
from app.answer.citations import without_markers
from app.answer.evidence import Found, answers, missing_clauses, quote_lines
from app.documents import LoadedDocument
from app.types import Citation
from eval.runs.material import search_of
from eval.runs.opened import index_document
from eval.runs.switches import Switches
from eval.types import (
    CitedSpan,
    EvalDocument,
    Question,
    Reply,
    ReplyTimings,
    Span,
)
from retrieval.language import detect


class Session(Protocol):
    """One document that is being asked."""

    @property
    def doc_tokens(self) -> int | None:
        """Length of the document; None without a tokenizer."""
        ...

    def reply(self, question: Question) -> Reply:
        """Answers one question. Raises Unfit, or whatever went wrong."""
        ...


class Answerer(Protocol):
    """A mode at work."""

    @property
    def alive(self) -> bool:
        """False when no further question can be answered."""
        ...

    def opened(self, document: EvalDocument) -> AbstractContextManager[Session]:
        """A session on a document. Raises Unfit, or whatever keeps it from being opened."""
        ...


@dataclass(frozen=True, slots=True)
class RetrievalAnswerer:
    """Mode `bm25`: the first retrieved sentences as quotes, and retrieval's refusal."""

    switches: Switches
    seed: int
    chunk_chars: int
    alive: bool = True

    @contextmanager
    def opened(self, document: EvalDocument) -> Iterator[Session]:
        """Builds the search index."""
        loaded = index_document(document.doc_id, document.document, chunk_chars=self.chunk_chars)
        yield _RetrievalSession(loaded, self.switches, self.seed)


@dataclass(frozen=True, slots=True)
class _RetrievalSession:
    document: LoadedDocument
    switches: Switches
    seed: int
    doc_tokens: None = None

    def reply(self, question: Question) -> Reply:
        started = time.perf_counter()
        documents = [self.document]
        language = detect(question.question)
        search = search_of(self.switches.run.evidence, question, self.seed)
        found = search(documents, question.question)
        absent = missing_clauses(documents, question.question)
        lines: tuple[str, ...] = ()
        citations: tuple[Citation, ...] = ()
        if absent or not found.answerable:
            if absent:
                lines = (wording.no_such_clause(language, absent, 1),)
            else:
                lines = (found.evidence[0].reason,)
        else:
            citations = answers(found, documents, self.switches.ask)
            lines = quote_lines(language, citations, several=False)
        took = 1000 * (time.perf_counter() - started)
        return Reply(
            status="answered" if citations else "not_found",
            shown="\n".join(lines),
            prediction=prediction(citations, ""),
            timings=ReplyTimings(ttft_ms=took, total_ms=took),
            citations=cited(citations),
            hits=hit_spans(found),
            finish_reason="quote",
        )


def cited(citations: Sequence[Citation]) -> tuple[CitedSpan, ...]:
    """The product's citations as an evaluation sees them."""
    return tuple(
        CitedSpan(c.start_char, c.end_char, c.quote, c.verified, c.role) for c in citations
    )


def hit_spans(found: Found) -> tuple[Span, ...]:
    """Places of the retrieved chunks of the one document, best first."""
    return tuple((hit.chunk.start, hit.chunk.end) for hit in found.evidence[0].hits)


def prediction(citations: Sequence[Citation], claims: str) -> str:
    """Quotes that answer and the model's words, without labels, markers and notices."""
    words = re.sub(r"\s+", " ", without_markers(claims, len(citations))).strip()
    quotes = [citation.quote for citation in citations if citation.role == "answer"]
    return "\n".join([*quotes, *([words] if words else [])])
