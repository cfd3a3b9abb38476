"""Modes with our own engine: `evidence`, `text` and `dense`.

    evidence   the product's answer; the model sees KV pages of the evidence and the quotes as text
    text       the same without KV pages
    dense      the whole document as text in one prompt, full attention; the model writes freely

The likelihood of the gold answer is taken with each mode's own context and the plain question:
`evidence` with the prompt of the product's phrasing (pages, then the quotes as text, as the
switches say); `text` with the text of exactly the token ranges that `evidence` gives as pages, best
last, so that pages and text are compared on the same material; `dense` with the whole text. It is
taken as if the question had not been refused, and after the reply, so that a reply's `read_tokens`
are its own; blocks that it reads are warm for the document's next question.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app.answer.evidence import Found, answers
from app.ask import ask
from app.documents import LoadedDocument
from app.events import AnswerCompleted, AnswerDelta
from app.phrasing import plan_phrasing
from app.prompt import PromptPlan, evidence_ranges, plan_prompt
from app.rerank import rerank
from app.settings import BlockCuts
from app.types import Answer
from backend.errors import BackendError
from eval.errors import Unfit
from eval.runs.answerers import Session, cited, hit_spans, prediction
from eval.runs.free_text import hinted, unverified
from eval.runs.likelihood import answer_nll, best_choice
from eval.runs.material import passages_by_tokens, search_of, unrefused
from eval.runs.opened import open_document
from eval.runs.switches import Switches
from eval.runs.writing import request_number, written
from eval.types import EvalDocument, Mode, Question, Reply, ReplyTimings, ReplyUsage
from retrieval.language import detect
from retrieval.types import Language

if TYPE_CHECKING:
    from backend.engine import Engine


@dataclass(frozen=True, slots=True)
class EngineAnswerer:
    """Modes `evidence` and `text`. `anchors` is the number per block, 0 when blocks are read
    independently."""

    engine: Engine
    mode: Mode
    switches: Switches
    seed: int
    chunk_chars: int
    anchors: int = 0
    block_cuts: BlockCuts = "clauses"

    @property
    def alive(self) -> bool:
        return self.engine.alive

    @contextmanager
    def opened(self, document: EvalDocument) -> Iterator[EvidenceSession]:
        """Builds index and tokens; the engine forgets the document at the end."""
        loaded = open_document(
            document.doc_id, document.document, self.engine,
            chunk_chars=self.chunk_chars, anchors_per_block=self.anchors,
            block_cuts=self.block_cuts,
        )  # fmt: skip
        try:
            yield EvidenceSession(
                self.engine, self.mode, self.switches, self.seed, loaded,
                len(loaded.tokens.token_ids),
            )  # fmt: skip
        finally:
            if self.engine.alive:
                self.engine.forget(loaded.tokens.key)


@dataclass(frozen=True, slots=True)
class DenseAnswerer:
    """Mode `dense`."""

    engine: Engine
    switches: Switches

    @property
    def alive(self) -> bool:
        return self.engine.alive

    @contextmanager
    def opened(self, document: EvalDocument) -> Iterator[Session]:
        """Counts the tokens."""
        tokens = len(self.engine.tokenizer.encode(document.text))
        yield _DenseSession(self.engine, self.switches, document.text, tokens)


@dataclass(frozen=True, slots=True)
class EvidenceSession:
    """A document that is asked with its evidence, as pages or as text."""

    engine: Engine
    mode: Mode
    switches: Switches
    seed: int
    document: LoadedDocument
    doc_tokens: int

    def plan(self, question: Question) -> PromptPlan:
        """The prompt that likelihoods are taken with."""
        return self._material(question)[1]

    def reply(self, question: Question) -> Reply:
        """See `Session`."""
        before = self._computed()
        if self.switches.run.answer == "checked":
            reply = self._checked(question)
        else:
            reply = self._free(question)
        # Not from the stream's last event: a phrasing that fails its checks never gets there.
        read = self._reinjected(reply) if self.mode == "text" else self._computed() - before
        found, plan = self._material(question)
        return replace(
            reply,
            usage=replace(reply.usage, read_tokens=read),
            hits=hit_spans(found),
            nll=answer_nll(self.engine, plan, question) if self.switches.run.nll else None,
            choice=best_choice(self.engine, plan, question),
        )

    def _computed(self) -> int:
        """Tokens of the document that went through the model so far."""
        progress = self.engine.progress(self.document.tokens.key)
        return progress.computed_tokens if progress else 0

    def _reinjected(self, reply: Reply) -> int:
        """Tokens of the document that the model was given as text, which it computes each time."""
        quotes = [citation.quote for citation in reply.citations if self.switches.ask.phrase]
        if not quotes:
            return reply.usage.read_tokens
        return sum(len(self.engine.tokenizer.encode(quote)) for quote in quotes)

    def _checked(self, question: Question) -> Reply:
        answer: Answer | None = None
        claims = ""
        for event in ask(
            self.engine,
            [self.document],
            question.question,
            request_id=f"eval-{request_number()}",
            options=self.switches.ask,
            search=search_of(self.switches.run.evidence, question, self.seed),
        ):
            if isinstance(event, AnswerDelta) and event.kind == "phrasing":
                claims += event.text
            elif isinstance(event, AnswerCompleted):
                answer = event.answer
        if answer is None:
            raise BackendError("The answer ended before it was complete")
        refused = answer.status == "not_found"
        return Reply(
            status=answer.status,
            shown=answer.answer,
            prediction="" if refused else prediction(answer.citations, claims),
            timings=ReplyTimings(
                ttft_ms=answer.timings.ttft_ms,
                total_ms=answer.timings.total_ms,
                queue_ms=answer.timings.queue_ms,
                decode_ms=answer.timings.decode_ms,
            ),
            citations=cited(answer.citations),
            claims=claims.strip(),
            marked=tuple(check.text for check in answer.checks if not check.ok),
            finish_reason=answer.finish_reason,
            usage=ReplyUsage(
                prompt_tokens=answer.usage.prompt_tokens,
                cached_tokens=answer.usage.cached_tokens,
                read_tokens=answer.usage.read_tokens,
                completion_tokens=answer.usage.completion_tokens,
            ),
        )

    def _free(self, question: Question) -> Reply:
        started = time.perf_counter()
        language = detect(question.question)
        words = question.question
        if self.switches.run.refusal_hint:
            words = hinted(words, language)
        _, plan = self._material(question, words)
        reply = written(self.engine, plan, self.switches.ask.max_tokens, started)
        if self.mode == "evidence":
            return reply
        bare = plan_prompt(self.engine.tokenizer, words, language, ())
        given = len(plan.prompt_ids) - len(bare.prompt_ids)
        return replace(reply, usage=replace(reply.usage, read_tokens=given))

    def _material(self, question: Question, words: str = "") -> tuple[Found, PromptPlan]:
        """What was found, and the prompt with it. `words` are put to the model instead of the
        question, which alone is searched for."""
        asked, language, options = question.question, detect(question.question), self.switches.ask
        search = search_of(self.switches.run.evidence, question, self.seed)
        documents = [self.document]
        found = unrefused(search(documents, asked))
        if options.rerank and found.candidates:
            found = rerank(self.engine, found, documents, asked)
        words = words or asked
        if self.mode == "text":
            passages = passages_by_tokens(self.document, found, options.evidence_tokens)
            return found, plan_prompt(self.engine.tokenizer, words, language, passages)
        if not found.candidates:
            return found, self._without_quotes(found, words, language)
        citations = answers(found, documents, options)
        return found, plan_phrasing(
            self.engine, documents, found, citations, words, language, options
        )

    def _without_quotes(self, found: Found, words: str, language: Language) -> PromptPlan:
        options, document = self.switches.ask, self.document
        chunks = found.chunks(0) if options.pages else ()
        pages = evidence_ranges(document, chunks, max_tokens=options.evidence_tokens)
        return plan_prompt(
            self.engine.tokenizer, words, language, (), document=document.tokens, evidence=pages
        )


@dataclass(frozen=True, slots=True)
class _DenseSession:
    engine: Engine
    switches: Switches
    text: str
    doc_tokens: int

    def reply(self, question: Question) -> Reply:
        started = time.perf_counter()
        language = detect(question.question)
        words = question.question
        if self.switches.run.refusal_hint:
            words = hinted(words, language)
        reply = written(
            self.engine, self._plan(words, language), self.switches.ask.max_tokens, started
        )
        # A dense prompt is computed anew for each question.
        reply = replace(reply, usage=replace(reply.usage, read_tokens=self.doc_tokens))
        if self.switches.run.answer == "checked":
            reply = replace(reply, marked=unverified(reply.shown, [self.text]))
        plan = self._plan(question.question, language)
        return replace(
            reply,
            nll=answer_nll(self.engine, plan, question) if self.switches.run.nll else None,
            choice=best_choice(self.engine, plan, question),
        )

    def _plan(self, words: str, language: Language) -> PromptPlan:
        """Raises Unfit when document and answer are longer than the model's window."""
        window, answer = self.engine.config.max_positions, self.switches.ask.max_tokens
        needed = self.doc_tokens + answer
        if needed <= window:
            plan = plan_prompt(self.engine.tokenizer, words, language, [self.text])
            needed = len(plan.prompt_ids) + answer
            if needed <= window:
                return plan
        raise Unfit(
            f"document, question and answer need {needed} tokens and the model takes {window}"
        )
