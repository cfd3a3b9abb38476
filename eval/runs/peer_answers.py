"""Mode `peer`: any OpenAI-compatible endpoint answers in its own words.

It is given what our own engine would be given as text: the retrieved chunks, best last, within a
budget of estimated tokens (there is no tokenizer of the peer here), or the whole document.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from app.answer.evidence import Found
from app.documents import LoadedDocument
from app.prompt import SYSTEM, user_message
from eval.errors import Unfit
from eval.runs.answerers import Session, hit_spans
from eval.runs.free_text import chosen_letter, hinted, is_refusal, unverified, with_choices
from eval.runs.likelihood import LETTERS
from eval.runs.material import passages_by_chars, search_of, unrefused
from eval.runs.opened import index_document
from eval.runs.peer_client import PeerClient, PromptTooLong
from eval.runs.switches import Switches
from eval.types import EvalDocument, Question, Reply, ReplyTimings, ReplyUsage
from retrieval.language import detect


@dataclass(frozen=True, slots=True)
class PeerAnswerer:
    """One endpoint, one question at a time."""

    client: PeerClient
    switches: Switches
    seed: int
    chunk_chars: int
    alive: bool = True

    @contextmanager
    def opened(self, document: EvalDocument) -> Iterator[Session]:
        """Builds the search index where passages are retrieved."""
        loaded = None
        if self.switches.run.context == "retrieved":
            loaded = index_document(
                document.doc_id, document.document, chunk_chars=self.chunk_chars
            )
        yield _PeerSession(self.client, self.switches, self.seed, document.text, loaded)


@dataclass(frozen=True, slots=True)
class _PeerSession:
    client: PeerClient
    switches: Switches
    seed: int
    text: str
    document: LoadedDocument | None
    doc_tokens: None = None

    def reply(self, question: Question) -> Reply:
        started = time.perf_counter()
        language = detect(question.question)
        found = self._found(question)
        passages = self._passages(found)
        words = question.question
        if question.choices:
            words = with_choices(question, LETTERS, language)
        elif self.switches.run.refusal_hint:
            words = hinted(words, language)
        messages = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": user_message(words, language, passages)},
        ]
        before = 1000 * (time.perf_counter() - started)
        try:
            completion = self.client.complete(messages, self.switches.ask.max_tokens)
        except PromptTooLong as error:
            raise Unfit(error.message) from error
        text = completion.text.strip()
        refused = not question.choices and is_refusal(text)
        choice = chosen_letter(text, len(question.choices), LETTERS)
        predicted = "" if refused else text
        if choice is not None:
            predicted = question.choices[LETTERS.index(choice)]
        checked = self.switches.run.answer == "checked"
        return Reply(
            status="not_found" if refused else "answered",
            shown=text,
            prediction=predicted,
            timings=ReplyTimings(
                ttft_ms=before + completion.ttft_ms,
                total_ms=before + completion.total_ms,
                queue_ms=completion.waited_ms,
                decode_ms=completion.total_ms - completion.ttft_ms,
            ),
            claims=text,
            marked=unverified(text, passages) if checked and not refused else (),
            hits=hit_spans(found) if found else (),
            choice=choice,
            finish_reason=completion.finish_reason,
            usage=ReplyUsage(
                prompt_tokens=completion.prompt_tokens,
                cached_tokens=completion.cached_tokens,
                completion_tokens=completion.completion_tokens,
            ),
        )

    def _found(self, question: Question) -> Found | None:
        if self.document is None:
            return None
        search = search_of(self.switches.run.evidence, question, self.seed)
        return unrefused(search([self.document], question.question))

    def _passages(self, found: Found | None) -> tuple[str, ...]:
        if self.document is None or found is None:
            return (self.text,)
        return passages_by_chars(self.document, found, self.switches.ask.evidence_tokens)
