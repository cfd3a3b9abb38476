"""Engine events as OpenAI's objects: whole replies and chunks of streams, for chat and for text.

A chunk goes out only with text in it (the role comes with the first), but for the last one of a
choice, which says why it ended. Does not know HTTP.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from app.api.openai.logprobs import chat_logprobs, text_logprobs
from app.api.openai.requests import GenerationRequest
from app.completion_run import ChoiceEvent, CompletionRun
from app.generation_prompt import GenerationPrompt, HeldDocument
from backend.tokenizer import Tokenizer
from backend.types import TokenEvent

Kind = Literal["chat", "text"]
# Nothing but its deadline cancels a generation that is still replied to.
_STOP_REASONS = {"repetition": "repetition", "cancelled": "timeout"}
_PREFIX = {"chat": "chatcmpl-", "text": "cmpl-"}
_OBJECT = {"chat": "chat.completion", "text": "text_completion"}
_CHUNK_OBJECT = {"chat": "chat.completion.chunk", "text": "text_completion"}


class _Choice:
    """What is known of one choice so far."""

    def __init__(
        self,
        index: int,
        prompt: GenerationPrompt,
        kind: Kind,
        tokenizer: Tokenizer,
        logprobs: bool,
    ) -> None:
        held = prompt.document
        self.index = index
        self.tokens = 0
        self.cached_tokens = 0 if held is None else held.kv_tokens
        self.read_tokens = 0
        self._held = held
        self._kind = kind
        self._tokenizer = tokenizer
        self._logprobs = logprobs
        self._begun = False
        # Tokens whose text, or the rest of whose character, has not come yet.
        self._untold: list[TokenEvent] = []
        self._offset = 0

    def pieces(self, event: TokenEvent) -> list[dict[str, Any]]:
        """`choices[0]` of each chunk that the event makes: none while its text is incomplete."""
        self._take(event)
        pieces = [self._piece(event.text)] if event.text else []
        if event.finish_reason is not None:
            last = {} if self._begun or self._kind == "text" else _opening("")
            body = {"text": ""} if self._kind == "text" else {"delta": last}
            told = self._tell() if self._untold else None
            pieces.append({"index": self.index, **body, "logprobs": told, **self._end(event)})
        return pieces

    def whole(self, events: list[TokenEvent]) -> dict[str, Any]:
        """`choices[i]` of the reply that is sent at once."""
        for event in events:
            self._take(event)
        text = "".join(event.text for event in events)
        body = {"text": text} if self._kind == "text" else {"message": _message(text)}
        return {"index": self.index, **body, "logprobs": self._tell(), **self._end(events[-1])}

    def _end(self, event: TokenEvent) -> dict[str, Any]:
        told = _end(event)
        return told if self._held is None else told | {"fineprint": _document(self._held)}

    def _take(self, event: TokenEvent) -> None:
        before = self.tokens
        self.tokens = before + 1 if event.usage is None else event.usage.completion_tokens
        if event.usage is not None:
            self.read_tokens = event.usage.read_tokens
            if self._held is None:
                self.cached_tokens = event.usage.cached_tokens
        # The token by which the model ends its answer is no part of it.
        if self._logprobs and self.tokens > before:
            self._untold.append(event)

    def _piece(self, text: str) -> dict[str, Any]:
        body: dict[str, Any]
        if self._kind == "text":
            body = {"text": text}
        else:
            body = {"delta": {"content": text} if self._begun else _opening(text)}
        self._begun = True
        return {"index": self.index, **body, "logprobs": self._tell(), "finish_reason": None}

    def _tell(self) -> dict[str, Any] | None:
        if not self._logprobs:
            return None
        if self._kind == "chat":
            told = chat_logprobs(self._tokenizer, self._untold)
        else:
            told, self._offset = text_logprobs(self._tokenizer, self._untold, self._offset)
        self._untold = []
        return told


class Reply:
    """A run of plain generation as OpenAI's objects."""

    def __init__(
        self,
        run: CompletionRun,
        kind: Kind,
        body: GenerationRequest,
        *,
        model: str,
        tokenizer: Tokenizer,
    ) -> None:
        options = body.stream_options
        self.run = run
        self.ends_with_usage = options is not None and options.include_usage
        self._counting = options is not None and options.continuous_usage_stats
        self._kind = kind
        self._n = body.n
        self._model = model
        self._choices = [
            _Choice(index, prompt, kind, tokenizer, body.tells_logprobs)
            for index, prompt in enumerate(run.prompts)
        ]

    def chunks(self, item: ChoiceEvent) -> list[dict[str, Any]]:
        """The chunks that one event makes."""
        chunks = []
        for piece in self._choices[item.choice].pieces(item.event):
            chunk = {**self._head(_CHUNK_OBJECT), "choices": [piece]}
            if self._counting:
                chunk["usage"] = self.usage()
            elif self.ends_with_usage:
                chunk["usage"] = None
            chunks.append(chunk)
        return chunks

    def usage_chunk(self) -> dict[str, Any]:
        """The chunk without choices that ends a stream with `include_usage`."""
        return {**self._head(_CHUNK_OBJECT), "choices": [], "usage": self.usage()}

    def whole(self) -> dict[str, Any]:
        """The reply of a run that is over."""
        events: list[list[TokenEvent]] = [[] for _ in self._choices]
        for item in self.run.events_after(0):
            events[item.choice].append(item.event)
        choices = [choice.whole(own) for choice, own in zip(self._choices, events, strict=True)]
        return {**self._head(_OBJECT), "choices": choices, "usage": self.usage()}

    def usage(self) -> dict[str, Any]:
        """Counts so far. A prompt counts once, however many choices it has; of a document in it
        `cached_tokens` had KV when the prompt came, and `shown_tokens` were given to the model."""
        first = self._choices[:: self._n]
        prompts = self.run.prompts[:: self._n]
        told = usage_body(
            sum(prompt.tokens for prompt in prompts),
            sum(choice.tokens for choice in self._choices),
            cached=sum(choice.cached_tokens for choice in first),
            read=sum(choice.read_tokens for choice in self._choices),
        )
        if any(prompt.document for prompt in prompts):
            shown = sum(prompt.given - len(prompt.plan.prompt_ids) for prompt in prompts)
            told["prompt_tokens_details"]["shown_tokens"] = shown
        return told

    def _head(self, objects: dict[str, str]) -> dict[str, Any]:
        return {
            "id": _PREFIX[self._kind] + self.run.id,
            "object": objects[self._kind],
            "created": self.run.created,
            "model": self._model,
        }


def usage_body(prompt: int, generated: int, *, cached: int, read: int) -> dict[str, Any]:
    """OpenAI's usage; `read_tokens` (document tokens read for this request) is ours."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": generated,
        "total_tokens": prompt + generated,
        "prompt_tokens_details": {"cached_tokens": cached, "read_tokens": read},
    }


def _opening(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def _message(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text, "refusal": None, "annotations": []}


def _document(held: HeldDocument) -> dict[str, Any]:
    """Which document the prompt was found to hold, and what of it the model was shown."""
    return {"document_id": held.id, "document_tokens": held.tokens, "shown": held.spans}


def _end(event: TokenEvent) -> dict[str, Any]:
    """Why a choice ended. An answer that ran into a loop was stopped there, one whose time was up
    ends where it was; vLLM's `stop_reason` tells that apart from what the model or a limit ended.
    """
    reason = event.finish_reason
    return {
        "finish_reason": "length" if reason in ("length", "cancelled") else "stop",
        "stop_reason": _STOP_REASONS.get(reason or ""),
        "timings": None if event.timings is None else asdict(event.timings),
    }
