"""The model's own words after the quotes, shown sentence by sentence as far as they pass.

A sentence is shown once it is whole and every check on it passes; the first one that fails ends
the phrasing, because what follows may lean on it. When nothing passed, the model may be asked once
more with the whole clauses as text, and a claim that still fails may be shown as not confirmed
(`AskOptions.regenerate`, `AskOptions.failed`). Knows the engine and the checks; does not know how
the quotes were chosen.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app.answer import wording
from app.answer.acceptance import acceptable, answers, repeats
from app.answer.checks import check_text
from app.answer.citations import resolve_markers, without_markers
from app.answer.evidence import Found
from app.attempts import both, request_ids, spent
from app.events import AnswerDelta, AnswerEvent, CheckDone
from app.prompt import STOPS, PromptPlan, Span, evidence_ranges, plan_prompt
from app.sentences import SentenceStream
from app.types import AskOptions, Check, Citation, PhrasingUse
from backend.errors import BackendError
from backend.types import EngineTimings, Request, SamplingParams, Usage
from retrieval.types import Language

if TYPE_CHECKING:
    from app.documents import LoadedDocument
    from app.engines import AnyEngine, Stream

_log = logging.getLogger(__name__)

CUT = "cut"
"""The `finish_reason` of words that ended because others waited for the model."""


@dataclass(frozen=True, slots=True)
class Phrasing:
    """What became of the model's words: the text that was shown, its checks and the engine's
    account of all attempts. `error` is set when `use` is "failed"; `refused` is the sentence that
    failed when nothing was shown."""

    use: PhrasingUse
    text: str = ""
    checks: tuple[Check, ...] = ()
    finish_reason: str = "quote"
    usage: Usage | None = None
    timings: EngineTimings | None = None
    error: str = ""
    refused: str = ""

    def then(self, again: Phrasing) -> Phrasing:
        """The second attempt's outcome with the account of both."""
        if again.use == "none":
            # Silence or a quote said again: what the first attempt claimed still fails.
            again = replace(again, use=self.use, refused=self.refused)
        return replace(
            again, usage=both(self.usage, again.usage), timings=spent(self.timings, again.timings)
        )


NO_PHRASING = Phrasing("off")


@dataclass(frozen=True, slots=True)
class _Ground:
    """What the model's words are judged by; `offset` is the length of the answer before them."""

    spans: tuple[str, ...]
    labels: tuple[str, ...]
    question: str
    language: Language
    offset: int

    @property
    def known(self) -> int:
        """Markers that may stand. The model is given its passages without numbers, best last, so
        only where there is one source can a number of its be right."""
        return 1 if len(self.spans) == 1 else 0

    def checks(self, words: str, shown: int) -> tuple[Check, ...]:
        """The checks of `words`, which stand `shown` characters after `offset`."""
        bare = without_markers(words, self.known)
        return check_text(bare, self.spans, labels=self.labels, offset=self.offset + shown)


def phrase(
    engine: AnyEngine,
    documents: Sequence[LoadedDocument],
    found: Found,
    citations: Sequence[Citation],
    question: str,
    language: Language,
    request_id: str,
    cancelled: threading.Event,
    options: AskOptions,
    *,
    offset: int,
    brief: threading.Event,
) -> Generator[AnswerEvent, None, Phrasing]:
    """Generate and show; `offset` is the length of the answer so far. Once `brief` is set it ends
    with what is shown, "cut", and "off" where that is nothing. Returns what was shown."""
    ground = _Ground(
        tuple(citation.quote for citation in citations),
        tuple(citation.clause for citation in citations if citation.clause),
        question,
        language,
        offset,
    )
    plan = plan_phrasing(engine, documents, found, citations, question, language, options)
    first, second = request_ids(request_id)
    owner = documents[0].record.owner
    ends = (cancelled, brief)
    phrasing = yield from _attempt(engine, plan, ground, first, owner, ends, options)
    if phrasing.use == "dropped" and options.regenerate and not any(e.is_set() for e in ends):
        plan = plan_again(engine, documents, found, citations, question, language, options)
        again = yield from _attempt(engine, plan, ground, second, owner, ends, options)
        phrasing = phrasing.then(again)
    if phrasing.use == "dropped" and options.failed == "mark":
        phrasing = yield from _marked(phrasing, ground)
    return phrasing


def _attempt(
    engine: AnyEngine,
    plan: PromptPlan,
    ground: _Ground,
    request_id: str,
    owner: str,
    ends: tuple[threading.Event, threading.Event],
    options: AskOptions,
) -> Generator[AnswerEvent, None, Phrasing]:
    """One answer of the model, shown as far as it passes. `ends`: it was cancelled, or shall be
    brief."""
    cancelled, brief = ends
    request = Request(
        request_id=request_id,
        prompt_ids=plan.prompt_ids,
        sampling=SamplingParams(max_tokens=options.max_tokens, stop=STOPS),
        document_key=plan.document_key,
        evidence=plan.evidence,
        sink_len=plan.sink_len,
        messages=plan.messages,
        owner=owner,
    )
    shown, checks, refused = "", list[Check](), ""
    use: PhrasingUse = "none"
    stream = SentenceStream()
    generated = None
    try:
        # Closing the stream is what cancels the request.
        generated = engine.generate(request)
        if cancelled.is_set() or brief.is_set():
            # From before the engine knew the request: nobody else will tell it.
            engine.cancel(request_id)
        with closing(generated) as events:
            for sentence in stream.read(events, cancelled):
                lead = "" if shown else "\n\n"
                words = resolve_markers(sentence, ground.known, ground.spans)
                found = ground.checks(words, len(shown) + len(lead))
                if not acceptable(words, found, ground.spans, ground.question, ground.language):
                    use, refused = ("cut", "") if shown else ("dropped", words)
                    break
                if shown and words.strip() in shown:
                    use = "cut"
                    break
                if not shown and repeats(words, ground.spans):
                    continue
                yield AnswerDelta(lead + words, "phrasing")
                for check in found:
                    yield CheckDone(check)
                shown += lead + words
                checks.extend(found)
                use = "used"
    except BackendError as error:
        _log.warning("phrasing failed for request %s: %s", request_id, error)
        usage, timings = _spent(stream, generated)
        return Phrasing("failed", shown, tuple(checks), "error", usage, timings, str(error))
    usage, timings = _spent(stream, generated)
    if stream.finish_reason == "cancelled" and not cancelled.is_set():
        # What is shown stands, and might have been qualified by what was to come.
        use = "cut" if shown else use
        if brief.is_set():
            use = use if shown else "off"
            stream.finish_reason = CUT if shown else NO_PHRASING.finish_reason
    notice = _notice(stream.finish_reason, ground.language) if shown else ""
    if notice:
        yield AnswerDelta(notice, "notice")
        use = "cut"
    return Phrasing(
        use=use,
        text=shown + notice,
        checks=tuple(checks),
        finish_reason=stream.finish_reason,
        usage=usage,
        timings=timings,
        error=stream.error,
        refused=refused,
    )


def _marked(phrasing: Phrasing, ground: _Ground) -> Generator[AnswerEvent, None, Phrasing]:
    """Shows the refused sentence as not confirmed, with its failed checks. One in which no check
    failed, or that answers nothing, stays unshown: there would be nothing to point at."""
    lead = "\n\n" + wording.unconfirmed(ground.language)
    checks = ground.checks(phrasing.refused, len(lead))
    if all(check.ok for check in checks) or not answers(
        phrasing.refused, ground.question, ground.language
    ):
        return phrasing
    yield AnswerDelta(lead, "notice")
    yield AnswerDelta(phrasing.refused, "phrasing")
    for check in checks:
        yield CheckDone(check)
    return replace(phrasing, use="marked", text=lead + phrasing.refused, checks=checks)


def plan_phrasing(
    engine: AnyEngine,
    documents: Sequence[LoadedDocument],
    found: Found,
    citations: Sequence[Citation],
    question: str,
    language: Language,
    options: AskOptions,
) -> PromptPlan:
    """The prompt: KV pages of the best document's evidence, the best clauses as text, the question.

    One request reads the pages of one document; quotes of other documents go in as text. An engine
    without pages is given the same evidence as text.
    """
    document = documents[found.best_document]
    evidence: tuple[Span, ...] = ()
    passages: list[str] = []
    if options.pages:
        chunks = found.chunks(found.best_document)
        evidence = evidence_ranges(document, chunks, max_tokens=options.evidence_tokens)
        if not engine.attends_pages:
            passages += [_words_of(document, span) for span in evidence]
            evidence = ()
    for citation in reversed(citations):
        needed = not evidence or citation.document_id != document.record.id
        if needed or options.reinject != "nothing":
            passages.append(citation.quote)
    best = found.candidates[0].sentence
    if options.reinject == "chunk":
        passages[-1] = document.text[best.chunk.start : best.chunk.end]
    return plan_prompt(
        engine.tokenizer,
        question,
        language,
        passages,
        document=document.tokens,
        evidence=evidence,
    )


def plan_again(
    engine: AnyEngine,
    documents: Sequence[LoadedDocument],
    found: Found,
    citations: Sequence[Citation],
    question: str,
    language: Language,
    options: AskOptions,
) -> PromptPlan:
    """The prompt of the second attempt: the whole chunks of the quotes as text, best last, read
    with full attention, and the request to use these words only. No KV pages."""
    passages: list[str] = []
    taken = 0
    for citation in citations:
        passage = _chunk_text(documents, found, citation)
        size = len(engine.tokenizer.encode(passage))
        if passage in passages or (passages and taken + size > options.evidence_tokens):
            continue
        passages.insert(0, passage)
        taken += size
    return plan_prompt(engine.tokenizer, question, language, passages, only_these_words=True)


def _chunk_text(documents: Sequence[LoadedDocument], found: Found, citation: Citation) -> str:
    """The chunk that a quote stands in; the quote itself when no candidate's chunk holds it."""
    for candidate in found.candidates:
        document, chunk = documents[candidate.document], candidate.sentence.chunk
        if (
            document.record.id == citation.document_id
            and chunk.start <= citation.start_char < chunk.end
        ):
            return document.text[chunk.start : chunk.end]
    return citation.quote


def _words_of(document: LoadedDocument, tokens: Span) -> str:
    """The text of a token range."""
    spans = document.token_spans
    return document.text[int(spans[tokens[0]][0]) : int(spans[tokens[1] - 1][1])]


def _spent(
    read: SentenceStream, generated: Stream | None
) -> tuple[Usage | None, EngineTimings | None]:
    """What the last event told, or what was spent by now on one that was left before its end."""
    if read.usage is None and generated is not None:
        return generated.account()
    return read.usage, read.timings


def _notice(finish: str, language: Language) -> str:
    if finish == "length":
        return wording.truncated(language)
    if finish == "repetition":
        return wording.stopped_repeating(language)
    if finish == CUT:
        return wording.unfinished(language)
    return ""
