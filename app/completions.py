"""Plain generation: prompts or chat messages in, runs of token events out.

This is the model as it is, without documents, retrieval or checks; questions about documents are
`app.ask`. A thread for each choice carries the engine's events to its run. Does not know HTTP.
"""

from __future__ import annotations

import contextvars
import dataclasses
import logging
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from app.completion_run import CompletionRun
from app.errors import AppError, BadRequest, TooManyQuestions, Unavailable
from app.failures import as_app_error
from app.waiting import Places
from backend.errors import BackendError, EngineBusy, InvalidSampling, WindowExceeded
from backend.types import Request, SamplingParams

if TYPE_CHECKING:
    from app.engines import AnyEngine, Stream
    from app.generation_prompt import GenerationPrompt

logger = logging.getLogger(__name__)

LIMIT = 64
"""Choices generated at the same time: the engine batches them, and each holds a context of its own
in memory."""


class Completions:
    """Starts and ends runs of plain generation. Close it to cancel what is left."""

    def __init__(
        self,
        engine: AnyEngine,
        *,
        limit: int = LIMIT,
        several_owners: bool = False,
        admit: Callable[[], None] = lambda: None,
        on_finished: Callable[[CompletionRun], None] | None = None,
    ) -> None:
        """`several_owners`: one leaves some of the choices to the others. `admit` raises what keeps
        new generations out for now."""
        self._engine = engine
        self._admit_new = admit
        self._places = Places(limit, several=several_owners)
        self._on_finished = on_finished
        self._lock = threading.Lock()
        self._runs: set[CompletionRun] = set()
        self._threads: set[threading.Thread] = set()
        self._timers: dict[str, threading.Timer] = {}
        self._closed = False

    def start(
        self,
        prompts: Sequence[GenerationPrompt],
        sampling: SamplingParams,
        *,
        owner: str,
        n: int = 1,
        fill_window: bool = False,
        arrived: float | None = None,
        timeout_s: float | None = None,
    ) -> CompletionRun:
        """Generate `n` choices for each of the prompts, the choices of the first prompt first. With
        a seed, choice i of a prompt has `seed + i`. `owner`: whose turn it takes. `fill_window`:
        instead of `max_tokens` the answer may have what the model's window leaves. `timeout_s`:
        seconds from `arrived` after which it ends with what is written.

        Raises BadRequest (`context_length_exceeded` for the model's window), TooLarge (for the
        engine's pages and memory), TooManyQuestions, Unavailable; then nothing is left running.
        """
        self._admit_new()
        wanted = [
            (prompt, self._sampling(prompt, sampling, choice, fill_window))
            for prompt in prompts
            for choice in range(n)
        ]
        run = CompletionRun(
            uuid.uuid4().hex,
            tuple(prompt for prompt, _ in wanted),
            arrived=time.perf_counter() if arrived is None else arrived,
            on_cancel=self._engine.cancel,
            timeout_s=timeout_s,
        )
        until = None if timeout_s is None else run.arrived + timeout_s
        self._admit(run, owner, len(wanted))
        streams: list[Stream] = []
        carried = 0
        try:
            for number, (prompt, params) in enumerate(wanted):
                plan = prompt.plan
                request = Request(
                    run.choice_id(number),
                    plan.prompt_ids,
                    params,
                    document_key=plan.document_key,
                    evidence=plan.evidence,
                    sink_len=plan.sink_len,
                    messages=plan.messages,
                    owner=owner,
                )
                streams.append(self._engine.generate(request))
            if until is not None:
                self._end_at(until, run)
            for stream in streams:
                self._carry_on(run, owner, carried, stream)
                carried += 1
        except BaseException as error:
            # Whatever it was, a place that is kept now would be kept until the next start. Choices
            # that have a thread already give theirs back at their end.
            for stream in streams[carried:]:
                stream.close()
            self._leave(run, owner, len(wanted) - carried)
            self._stop_timer(run)
            run.cancel()
            if isinstance(error, BackendError):
                busy = isinstance(error, EngineBusy)
                retry_s = self._places.retry_s(owner, len(wanted)) if busy else None
                raise _translated(error, retry_s) from error
            raise
        return run

    @property
    def idle(self) -> bool:
        """Whether nothing is being generated."""
        with self._lock:
            return not self._places.taken

    def stop_all(self) -> None:
        """Ends every run."""
        with self._lock:
            runs = tuple(self._runs)
        for run in runs:
            run.cancel()

    def close(self, timeout: float = 10.0) -> None:
        """Cancels every run and waits for its end; no run can be started afterwards."""
        with self._lock:
            self._closed = True
            threads = tuple(self._threads)
        self.stop_all()
        deadline = time.monotonic() + timeout
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _sampling(
        self, prompt: GenerationPrompt, sampling: SamplingParams, choice: int, fill_window: bool
    ) -> SamplingParams:
        window, given = self._engine.config.max_positions, prompt.given
        if given >= window:
            raise too_long(given, None, window)
        if fill_window:
            sampling = dataclasses.replace(sampling, max_tokens=window - given)
        elif given + sampling.max_tokens > window:
            raise too_long(given, sampling.max_tokens, window)
        if sampling.seed is not None and choice:
            # Seeds are 64 bits wide; past the highest it goes on with the lowest.
            seed = (sampling.seed + choice + 2**63) % 2**64 - 2**63
            sampling = dataclasses.replace(sampling, seed=seed)
        return sampling

    def _admit(self, run: CompletionRun, owner: str, choices: int) -> None:
        with self._lock:
            if self._closed:
                raise Unavailable("The server is stopping. Try again in a moment.")
            places = self._places
            if choices > places.own:
                raise BadRequest(
                    f"The request asks for {choices} choices at once; the limit is "
                    f"{places.own}. Lower n or send fewer prompts.",
                    details={"param": "n"},
                )
            if not places.take(owner, choices):
                each = "" if places.own == places.total else f", {places.own} of one owner"
                seconds = places.retry_s(owner, choices)
                raise TooManyQuestions(
                    f"{places.taken} generations are under way and the limit is {places.total}"
                    f"{each}. Try again in {seconds} s.",
                    code="rate_limit_exceeded",
                    retry_s=seconds,
                )
            self._runs.add(run)

    def _leave(self, run: CompletionRun, owner: str, choices: int) -> None:
        with self._lock:
            self._places.give_back(owner, choices)
            self._runs.discard(run)

    def _carry_on(self, run: CompletionRun, owner: str, choice: int, stream: Stream) -> None:
        # Its log lines are those of the request.
        carry = partial(contextvars.copy_context().run, self._carry, run, owner, choice, stream)
        thread = threading.Thread(target=carry, name="completion", daemon=True)
        # Under the lock: who waits for the threads must not meet one that was not started.
        with self._lock:
            thread.start()
            self._threads.add(thread)

    def _end_at(self, until: float, run: CompletionRun) -> None:
        timer = threading.Timer(max(0.0, until - time.perf_counter()), run.end_in_time)
        timer.daemon = True
        timer.start()
        with self._lock:
            self._timers[run.id] = timer

    def _stop_timer(self, run: CompletionRun) -> None:
        with self._lock:
            timer = self._timers.pop(run.id, None)
        if timer is not None:
            timer.cancel()

    def _carry(self, run: CompletionRun, owner: str, choice: int, stream: Stream) -> None:
        """Runs in a thread of its own until the choice is over."""
        over = False
        try:
            for event in stream:
                over = run.publish(choice, event)
        except BackendError as error:
            over = run.fail(choice, _translated(error))
        except Exception as error:
            # Whoever waits for this choice must hear that it is over, whatever went wrong.
            logger.error("generation %s failed unexpectedly", run.id, exc_info=error)
            message = f"Something went wrong on the server. The log has the details of {run.id}."
            over = run.fail(choice, AppError(message, code="internal_error"))
        finally:
            with self._lock:
                self._places.leave(owner)
                self._threads.discard(threading.current_thread())
                if over:
                    self._runs.discard(run)
            if over:
                self._stop_timer(run)
                if self._on_finished is not None:
                    self._on_finished(run)


def too_long(prompt: int, answer: int | None, window: int) -> BadRequest:
    """The error of a prompt (`prompt` tokens, with `answer` more to come) beyond the window."""
    more = "" if answer is None else f" and the answer may have {answer:,} more"
    return BadRequest(
        f"The prompt has {prompt:,} tokens{more}; the model's window is {window:,}. Shorten it or "
        "lower max_tokens. To ask about a long document, upload it (POST /api/v1/documents) and "
        "pass its id in document_ids of /v1/chat/completions.",
        code="context_length_exceeded",
        details={"param": "messages" if answer is None else "max_tokens"},
    )


def _translated(error: BackendError, retry_s: int | None = None) -> AppError:
    """With OpenAI's codes where it has one."""
    if isinstance(error, EngineBusy):
        return TooManyQuestions(str(error), code="rate_limit_exceeded", retry_s=retry_s)
    if isinstance(error, WindowExceeded):
        return BadRequest(str(error), code="context_length_exceeded")
    if isinstance(error, InvalidSampling):
        return BadRequest(str(error), code="invalid_value")
    return as_app_error(error)
