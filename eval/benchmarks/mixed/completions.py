"""Any OpenAI-compatible server under load: the document and a question as one plain prompt.

The whole document is in the prompt, so the first text is the grounded one as well. A second request
with the same document and another question follows; it is called warm only if the server says that
nearly all of the prompt was cached. What the server adds to every prompt (its template, a system
message) is measured beforehand and taken off both counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eval.benchmarks.mixed.clock import Clock
from eval.benchmarks.mixed.doors import Hearing, Journey, Json, event_json, open_client, travelled
from eval.benchmarks.mixed.loadfile import prompt_of
from eval.benchmarks.mixed.streams import read_events
from eval.benchmarks.mixed.types import (
    AnswerRecord,
    LoadRequest,
    PlantedQuestion,
    RequestRecord,
    Reuse,
    Role,
)
from eval.errors import PeerError

WARM_SHARE = 0.9
"""Cached share of a prompt above which it is called warm: servers reuse whole blocks, and the
question at its end is new."""
PATH = "/chat/completions"


class CompletionsDoor:
    """A server at `url` (with its /v1) that calls the model `model`."""

    api = "openai"

    def __init__(self, url: str, *, model: str, timeout_s: float, key: str | None = None) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._client = open_client(url, headers)
        self._model = model
        self._timeout_s = timeout_s
        self._overhead: int | None = None

    async def prepare(self) -> Json:
        """Asks for one token, which shows whether the server answers and how many tokens it adds to
        a prompt. Raises PeerError."""
        probe = Journey(
            self._client, LoadRequest("probe", "", ".", (), 0, "short", 1), 0.0, Clock()
        )
        reply: Json = {}

        async def ask() -> None:
            body = {
                "model": self._model,
                "messages": [{"role": "user", "content": "."}],
                "max_tokens": 1,
            }
            reply.update(await probe.json("probe", "POST", PATH, json=body))

        fault = await travelled(probe, ask(), self._timeout_s)
        if fault is not None:
            raise PeerError(f"{self._client.base_url} does not answer: {fault.message}")
        tokens = (reply.get("usage") or {}).get("prompt_tokens")
        self._overhead = None if tokens is None else int(tokens) - 1
        return {"model": self._model, "tokens_added_to_a_prompt": self._overhead}

    async def counters(self) -> Mapping[str, float]:
        """None: servers differ in theirs."""
        return {}

    async def serve(self, request: LoadRequest, arrival: float, clock: Clock) -> RequestRecord:
        """One document, asked twice."""
        journey = Journey(self._client, request, arrival, clock)
        fault = await travelled(journey, self._story(journey), self._timeout_s)
        tokens, reused = self._counts(journey.answers[0]) if journey.answers else (None, None)
        return RequestRecord(
            request_id=request.request_id,
            kind=request.kind,
            planned_tokens=request.tokens,
            status="done" if fault is None else "failed",
            timeline=dict(journey.marks),
            answers=tuple(journey.answers),
            fault=fault,
            document_tokens=tokens,
            computed_tokens=None if tokens is None or reused is None else tokens - reused,
            reused_tokens=reused,
        )

    def reuse(
        self,
        records: tuple[RequestRecord, ...],
        before: Mapping[str, float],
        after: Mapping[str, float],
    ) -> Reuse:
        """From the cached tokens of each answer's usage."""
        done = [record for record in records if record.fault is None]
        if any(record.reused_tokens is None for record in done):
            return Reuse(None, None, "nothing")
        tokens = sum(record.document_tokens or 0 for record in done)
        return Reuse(tokens, sum(record.reused_tokens or 0 for record in done), "usage")

    async def forget(self) -> None:
        """Nothing is stored under a name."""

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()

    async def _story(self, journey: Journey) -> None:
        first, _, again = journey.request.questions
        journey.mark("sent")
        await self._answer(journey, "any", first, ("first_text", "grounded_text"))
        journey.mark("warm_asked")
        warm = await self._answer(journey, "warm", again, ("warm_text",))
        tokens, reused = self._counts(warm)
        if not tokens or reused is None or reused < WARM_SHARE * tokens:
            del journey.marks["warm_text"]
        journey.mark("done")

    async def _answer(
        self, journey: Journey, role: Role, question: PlantedQuestion, marks: tuple[str, ...]
    ) -> AnswerRecord:
        hearing = Hearing(journey, role, marks)
        body = {
            "model": self._model,
            "messages": [{"role": "user", "content": prompt_of(journey.request, question)}],
            "max_tokens": journey.request.output_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        usage: Json = {}
        finish_reason, over = "", False
        async with journey.reply(role, "POST", PATH, json=body) as response:
            if role == "any":
                journey.mark("accepted")
            async for event in read_events(response.aiter_raw()):
                if event.data.strip() == "[DONE]":
                    over = True
                    continue
                chunk = event_json(role, event)
                if "error" in chunk:
                    raise journey.fail(role, *_error(chunk["error"]))
                usage = chunk.get("usage") or usage
                for choice in chunk.get("choices") or ():
                    for text, kind in _texts(choice.get("delta") or {}):
                        hearing.hear(text, kind)
                    finish_reason = choice.get("finish_reason") or finish_reason
        if not over and not finish_reason:
            raise journey.fail(role, "stream_ended", "The stream ended before its last event.")
        return hearing.record(question.expected, finish_reason=finish_reason, usage=usage)

    def _counts(self, answer: AnswerRecord) -> tuple[int | None, int | None]:
        """Tokens of document and question, and how many of them were cached."""
        prompt = answer.usage.get("prompt_tokens")
        if not isinstance(prompt, int) or self._overhead is None:
            return None, None
        tokens = prompt - self._overhead
        details = answer.usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
        if not isinstance(cached, int):
            return tokens, None
        return tokens, min(max(cached - self._overhead, 0), tokens)


def _texts(delta: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a delta adds, with its kind. Thoughts are text that the model generated as well."""
    named = (("reasoning", "reasoning"), ("reasoning_content", "reasoning"), ("content", "content"))
    return [(str(delta[field]), kind) for field, kind in named if delta.get(field)]


def _error(error: Any) -> tuple[str, str]:
    if not isinstance(error, dict):
        return "error", str(error)
    return str(error.get("code") or error.get("type") or "error"), str(error.get("message", ""))
