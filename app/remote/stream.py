"""One generation on a remote server, as the events that the bundled engine would give.

Before the first token another server may take over; after it the stream ends with an error,
because half an answer cannot be gone on with elsewhere. A thread of its own waits for the server,
so that who cancels never does. Knows the chat completions API.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import cast

import openai
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam
from openai.types.completion_usage import CompletionUsage

from app.remote.line import Line
from app.remote.servers import Server, Servers, said
from backend.errors import BackendError, EngineBusy, InvalidSampling, WindowExceeded
from backend.types import (
    EngineTimings,
    FinishReason,
    Request,
    SamplingParams,
    TokenEvent,
    Usage,
)

ROUNDS = 3
"""Times all servers are tried before the request fails."""
LONGEST_PAUSE_S = 20.0
"""The most that a server's Retry-After is waited for."""
TOKEN_CHARS = 64
"""A server that says more characters a token than this does not keep to `max_tokens`."""
MOST_STOPS = 4
"""Of the chat completions API."""
_FINISH: dict[str, FinishReason] = {"stop": "stop", "length": "length"}


class RemoteStream(Iterator[TokenEvent]):
    """Events up to the one with a `finish_reason`. For one thread, but `close` from any. Nobody is
    asked before the first event is."""

    def __init__(self, servers: Servers, request: Request) -> None:
        _check(request.sampling)
        self._servers = servers
        self._request = request
        self._cancelled = threading.Event()
        self._line = Line()
        self._waiting: queue.SimpleQueue[TokenEvent | Exception | None] = queue.SimpleQueue()
        self._asking: threading.Thread | None = None
        self._asked_at = self._first_at = 0.0
        self._sent_at = 0.0
        self._taken = 0
        self.over = False

    def __next__(self) -> TokenEvent:
        """Waits for the next event. Raises EngineBusy when every server is at its limit,
        WindowExceeded when the prompt is longer than the model takes, BackendError otherwise."""
        if self.over:
            raise StopIteration
        if self._asking is None and not self._cancelled.is_set():
            self._asked_at = time.perf_counter()
            self._asking = threading.Thread(target=self._ask, name="remote", daemon=True)
            self._asking.start()
        item = None if self._cancelled.is_set() else self._waiting.get()
        if item is None or self._cancelled.is_set():
            self.over = True
            return TokenEvent(
                self._request.request_id, self._taken, None, "", "cancelled", *self.account()
            )
        if isinstance(item, Exception):
            self.over = True
            raise item
        self.over = item.finish_reason is not None
        self._first_at = self._first_at or time.perf_counter()
        self._taken += 1
        return item

    def account(self) -> tuple[Usage, EngineTimings]:
        """What was spent so far. A server counts the prompt's tokens at its end, so they are 0
        here, and those of the answer are the pieces that it came in."""
        now = time.perf_counter()
        asked = self._asked_at or now
        first = self._first_at or now
        ttft = 1000 * (first - asked)
        return Usage(0, 0, 0, self._taken), EngineTimings(0.0, ttft, ttft, 1000 * (now - first))

    def cancel(self) -> None:
        """Leaves the server, from any thread; the last event then says so."""
        self._cancelled.set()
        self._waiting.put(None)
        self._line.cut()

    def close(self) -> None:
        """Take no more events: the server is left, which stops it."""
        self.over = True
        self.cancel()

    def _ask(self) -> None:
        started = time.perf_counter()
        with ExitStack() as stack, self._line.held():
            try:
                server, response, first = self._begun(stack)
                for event in self._told(server, response, first, started):
                    self._waiting.put(event)
            except Exception as error:
                # Raised again where the events are taken. After a cancel nobody takes any: a
                # connection that is cut makes the transport raise anything.
                self._waiting.put(error)

    def _begun(
        self, stack: ExitStack
    ) -> tuple[Server, openai.Stream[ChatCompletionChunk], ChatCompletionChunk | None]:
        """A server that has begun to answer, with the first chunk that it sent."""
        problems: dict[str, str] = {}
        busy = True
        for attempt in range(ROUNDS):
            pause = 0.0
            for server in self._servers.in_order():
                if self._cancelled.is_set():
                    break
                counted = stack.enter_context(ExitStack())
                counted.enter_context(self._servers.busy(server))
                self._sent_at = self._servers.now()
                try:
                    response = self._asked(server)
                    counted.callback(response.close)
                    first = _next(response)
                    self._servers.well(server)
                    return server, response, first
                except openai.BadRequestError as error:
                    # The server is well; no other one would take what this one refuses.
                    raise _refused(error) from error
                except openai.RateLimitError as error:
                    pause = max(pause, _retry_after(error))
                    problems[server.url] = said(error)
                except openai.OpenAIError as error:
                    busy = False
                    problems[server.url] = said(error)
                    told = _retry_after(error)
                    pause = max(pause, told)
                    # One that was left in the middle of a cancel has done nothing wrong.
                    if not self._cancelled.is_set():
                        self._failed(server, said(error), told)
                counted.close()
            if self._cancelled.is_set():
                raise BackendError("The request was cancelled before a server took it up.")
            if attempt + 1 < ROUNDS:
                # Full jitter: many askers of one server must not come back in step.
                wait = max(pause, random.uniform(0.0, 0.5 * 2.0**attempt))
                self._cancelled.wait(min(wait, LONGEST_PAUSE_S))
        what = "; ".join(f"{url}: {problem}" for url, problem in problems.items())
        if busy:
            raise EngineBusy(f"Every model server is at its limit. {what}")
        raise BackendError(f"No model server answers. {what}")

    def _asked(self, server: Server) -> openai.Stream[ChatCompletionChunk]:
        sampling = self._request.sampling
        messages = [
            cast(ChatCompletionMessageParam, {"role": role, "content": content})
            for role, content in self._request.messages
        ]
        return server.client.chat.completions.create(
            model=self._servers.model,
            messages=messages,
            stream=True,
            stream_options={"include_usage": True},
            max_tokens=sampling.max_tokens,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            stop=list(sampling.stop) or openai.omit,
            seed=openai.omit if sampling.seed is None else sampling.seed,
        )

    def _told(
        self,
        server: Server,
        response: openai.Stream[ChatCompletionChunk],
        chunk: ChatCompletionChunk | None,
        started: float,
    ) -> Iterator[TokenEvent]:
        first_at = 0.0
        index = 0
        left = TOKEN_CHARS * self._request.sampling.max_tokens
        finish: FinishReason | None = None
        usage: CompletionUsage | None = None
        while chunk is not None and not self._cancelled.is_set():
            usage = chunk.usage or usage
            for choice in chunk.choices[:1]:
                words = choice.delta.content or ""
                left -= len(words)
                if left < 0:
                    self._servers.failed(server, "it goes on beyond max_tokens")
                    raise BackendError(f"{server.url} goes on beyond max_tokens; it was left.")
                if words:
                    first_at = first_at or time.perf_counter()
                    yield TokenEvent(self._request.request_id, index, None, words)
                    index += 1
                if choice.finish_reason:
                    finish = _FINISH.get(choice.finish_reason, "stop")
            try:
                chunk = _next(response)
            except openai.OpenAIError as error:
                if not self._cancelled.is_set():
                    self._failed(server, said(error))
                raise BackendError(f"{server.url} broke off: {said(error)}") from error
        if self._cancelled.is_set():
            return
        if finish is None:
            # A connection that is closed between two chunks looks like an end, but is none.
            self._failed(server, "the stream ended in the middle")
            raise BackendError(f"{server.url} broke off: the stream ended in the middle")
        yield self._end(finish, usage, started, first_at or time.perf_counter(), index)

    def _failed(self, server: Server, problem: str, pause_s: float = 0.0) -> None:
        self._servers.failed(server, problem, asked_at=self._sent_at, pause_s=pause_s)

    def _end(
        self,
        finish: FinishReason,
        usage: CompletionUsage | None,
        started: float,
        first_at: float,
        index: int,
    ) -> TokenEvent:
        now = time.perf_counter()
        details = usage.prompt_tokens_details if usage else None
        ttft = 1000 * (first_at - started)
        return TokenEvent(
            self._request.request_id,
            index,
            None,
            "",
            finish_reason=finish,
            usage=Usage(
                prompt_tokens=usage.prompt_tokens if usage else 0,
                cached_tokens=(details.cached_tokens or 0) if details else 0,
                read_tokens=0,
                completion_tokens=usage.completion_tokens if usage else 0,
            ),
            timings=EngineTimings(0.0, ttft, ttft, 1000 * (now - first_at)),
        )


def _next(response: openai.Stream[ChatCompletionChunk]) -> ChatCompletionChunk | None:
    """The next chunk, None at the end. Raises OpenAIError alone: once a stream has begun, the
    client lets the errors of its transport through, whose types are its own affair."""
    try:
        return next(response, None)
    except openai.OpenAIError:
        raise
    except Exception as error:
        raise openai.APIConnectionError(
            message=str(error) or type(error).__name__, request=response.response.request
        ) from error


def _check(sampling: SamplingParams) -> None:
    """Raises InvalidSampling for what the chat completions API has no word for."""
    plain = SamplingParams()
    for name in ("top_k", "repetition_penalty", "ignore_eos", "min_tokens", "logprobs"):
        if getattr(sampling, name) != getattr(plain, name):
            raise InvalidSampling(f"A remote model server does not take {name}; leave it out.")
    if len(sampling.stop) > MOST_STOPS:
        raise InvalidSampling(f"A remote model server takes at most {MOST_STOPS} stop strings.")


def _refused(error: openai.BadRequestError) -> BackendError:
    text = str(error).lower()
    if "context" in text and ("length" in text or "window" in text or "exceed" in text):
        return WindowExceeded(
            f"The model server takes no prompt as long as this one: {said(error)} "
            "Lower FINEPRINT_REMOTE_EVIDENCE_TOKENS."
        )
    return BackendError(f"The model server refused the request: {said(error)}")


def _retry_after(error: openai.OpenAIError) -> float:
    """Seconds that a busy (429) or unavailable (503) server asks for; 0 for none and for a date."""
    if not isinstance(error, openai.APIStatusError) or error.status_code not in (429, 503):
        return 0.0
    try:
        return max(0.0, float(error.response.headers.get("retry-after", "0")))
    except ValueError:
        return 0.0
