"""The model's own words after the quotes, shown sentence by sentence as far as they pass.

A sentence is shown once it is whole and every check on it passes; the first one that fails ends
the phrasing, because what follows may lean on it. Knows the engine and the checks; does not know
how the quotes were chosen.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from app.answer import wording
from app.answer.checks import check_text, foreign_words
from app.answer.citations import resolve_markers, without_markers
from app.answer.evidence import Found
from app.events import AnswerDelta, AnswerEvent, CheckDone
from app.prompt import STOPS, PromptPlan, Span, evidence_ranges, plan_prompt
from app.types import AskOptions, Check, Citation, PhrasingUse
from backend.errors import BackendError
from backend.types import EngineTimings, Request, SamplingParams, TokenEvent, Usage
from retrieval.language import detect
from retrieval.types import Language

if TYPE_CHECKING:
    from app.documents import LoadedDocument
    from app.engines import AnyEngine

_log = logging.getLogger(__name__)

MAX_FOREIGN_WORDS = 0.25
"""Share of content words foreign to the quotes above which a sentence is not shown."""
MIN_NEW_WORDS = 0.25
"""Share of content words that must be more than an echo of the question."""
REPEATS = 0.8
"""Similarity to a quote above which a sentence tells the reader nothing new."""

_SENTENCE_END = re.compile(r"[。！？；\n]+[”」’]?|[.!?]+[”\"’)]?(?=\s+[\"“A-Z(]|\n)")
_YES_NO = re.compile(r"^\s*(?:yes|no)\b[,.!]?|^\s*(?:是的|不是|否|对)[，。,.]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Phrasing:
    """What became of the model's words: the text that was shown, its checks and the engine's
    account. `error` is set when `use` is "failed"."""

    use: PhrasingUse
    text: str = ""
    checks: tuple[Check, ...] = ()
    finish_reason: str = "quote"
    usage: Usage | None = None
    timings: EngineTimings | None = None
    error: str = ""


NO_PHRASING = Phrasing("off")


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
) -> Generator[AnswerEvent, None, Phrasing]:
    """Generate and show; `offset` is the length of the answer so far. Returns what was shown."""
    plan = plan_phrasing(engine, documents, found, citations, question, language, options)
    request = Request(
        request_id=request_id,
        prompt_ids=plan.prompt_ids,
        sampling=SamplingParams(max_tokens=options.max_tokens, stop=STOPS),
        document_key=plan.document_key,
        evidence=plan.evidence,
        sink_len=plan.sink_len,
        messages=plan.messages,
    )
    spans = [citation.quote for citation in citations]
    labels = [citation.clause for citation in citations if citation.clause]
    shown, checks, use = "", list[Check](), "none"
    stream = _Sentences()
    try:
        # Closing the stream is what cancels the request.
        generated = engine.generate(request)
        if cancelled.is_set():
            # Cancelled before the engine knew the request: nobody else will tell it.
            engine.cancel(request_id)
        with closing(generated) as events:
            for sentence in stream.read(events, cancelled):
                lead = "" if shown else "\n\n"
                words = resolve_markers(sentence, len(citations), spans)
                found_checks = check_text(
                    without_markers(words, len(citations)), spans, labels=labels,
                    offset=offset + len(shown) + len(lead),
                )  # fmt: skip
                if not acceptable(words, found_checks, spans, question, language):
                    use = "cut" if shown else "dropped"
                    break
                if shown and words.strip() in shown:
                    use = "cut"
                    break
                if not shown and _repeats(words, spans):
                    continue
                yield AnswerDelta(lead + words, "phrasing")
                for check in found_checks:
                    yield CheckDone(check)
                shown += lead + words
                checks.extend(found_checks)
                use = "used"
    except BackendError as error:
        _log.warning("phrasing failed for request %s: %s", request_id, error)
        return Phrasing("failed", shown, tuple(checks), "error", error=str(error))
    finish = stream.finish_reason
    notice = _notice(finish, language) if shown else ""
    if notice:
        yield AnswerDelta(notice, "notice")
        use = "cut"
    return Phrasing(
        use=use,  # type: ignore[arg-type]
        text=shown + notice,
        checks=tuple(checks),
        finish_reason=finish,
        usage=stream.usage,
        timings=stream.timings,
        error=stream.error,
    )


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


def _words_of(document: LoadedDocument, tokens: Span) -> str:
    """The text of a token range."""
    spans = document.token_spans
    return document.text[int(spans[tokens[0]][0]) : int(spans[tokens[1] - 1][1])]


def acceptable(
    words: str, checks: Sequence[Check], spans: Sequence[str], question: str, language: Language
) -> bool:
    """Whether a sentence may be shown: every check passes, it is in the question's language, it
    claims no bare yes or no, its words are mostly the quotes' and not only the question's."""
    if any(not check.ok for check in checks):
        return False
    if _YES_NO.match(words) or detect(words) != language:
        return False
    if foreign_words(words, [question]) < MIN_NEW_WORDS:
        return False
    return foreign_words(words, spans) <= MAX_FOREIGN_WORDS


class _Sentences:
    """Cuts the engine's stream into sentences and keeps the account of its last event."""

    def __init__(self) -> None:
        self.finish_reason = "stop"
        self.usage: Usage | None = None
        self.timings: EngineTimings | None = None
        self.error = ""

    def read(self, events: Iterator[TokenEvent], cancelled: threading.Event) -> Iterator[str]:
        """Whole sentences, each with the white space that follows it left out."""
        waiting = ""
        for event in events:
            waiting += event.text
            if event.finish_reason is not None:
                self.finish_reason = event.finish_reason
                self.usage, self.timings, self.error = event.usage, event.timings, event.error
            if cancelled.is_set():
                self.finish_reason = "cancelled"
                return
            while match := _SENTENCE_END.search(waiting):
                sentence, waiting = waiting[: match.end()], waiting[match.end() :]
                if sentence.strip():
                    yield sentence.rstrip("\n")
        if self.finish_reason == "error":
            raise BackendError(self.error or "The engine stopped with an error.")
        # A sentence that was cut off at the limit says less than the model meant, or the opposite.
        if waiting.strip() and self.finish_reason == "stop":
            yield waiting.rstrip()


def _repeats(sentence: str, spans: Sequence[str]) -> bool:
    """A sentence that is a quote, or a part of one, tells the reader nothing new."""
    squeezed = re.sub(r"\W", "", sentence).lower()
    for span in spans:
        source = re.sub(r"\W", "", span).lower()
        if squeezed in source or SequenceMatcher(None, source, squeezed).ratio() > REPEATS:
            return True
    return False


def _notice(finish: str, language: Language) -> str:
    if finish == "length":
        return wording.truncated(language)
    if finish == "repetition":
        return wording.stopped_repeating(language)
    return ""
