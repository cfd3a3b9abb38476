"""A client of any OpenAI-compatible endpoint that says when the first word came.

The first token is the first non-empty `content` of a choice: a chunk with only a role, a comment
that keeps the connection open or a status event is none, and a stream without any is an error.
Knows no document and no question.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

import httpx

from eval.datasets.places import sound
from eval.errors import PeerError

RETRIED = (429, 503)
ATTEMPTS = 5
LONGEST_WAIT_S = 120.0
"""A server that asks for a longer pause than this ends the sample."""
LONGEST_LINE = 4_000_000
"""Characters; a chunk of a stream has hundreds."""
LONGEST_ERROR = 65_536
"""Bytes of an error that are read."""
_TOO_LONG = ("context_length_exceeded", "maximum context length", "context length", "too long")


class PromptTooLong(PeerError):
    """The endpoint says that the prompt does not fit its model."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One streamed answer. Milliseconds from the call; `waited_ms` of them were spent on pauses
    that the server asked for. Token counts are the server's own, 0 where it tells none."""

    text: str
    finish_reason: str
    ttft_ms: float
    total_ms: float
    waited_ms: float
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


class PeerClient:
    """`endpoint` is the base URL, with /v1; `shown_endpoint` is it without a user or password, for
    records. Close it when done."""

    def __init__(
        self, endpoint: str, model: str, *, api_key: str = "", timeout_s: float = 300.0
    ) -> None:
        """Raises PeerError for an endpoint that is no http(s) URL."""
        parts = _url(endpoint)
        self.model = model
        self.timeout_s = timeout_s
        self.shown_endpoint = urlunsplit(
            parts._replace(netloc=parts.netloc.rpartition("@")[2])
        ).rstrip("/")
        # A user in the URL would take the place of the key.
        self.endpoint = self.shown_endpoint if api_key else endpoint.rstrip("/")
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx.Client(headers=headers, timeout=httpx.Timeout(timeout_s, connect=10.0))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def check(self) -> None:
        """Ask for the list of models, to find out before a run that nobody is there. Raises
        PeerError; a server without such a list passes."""
        try:
            with self._http.stream("GET", f"{self.endpoint}/models") as response:
                status = response.status_code
        except httpx.HTTPError as error:
            raise PeerError(
                f"Nobody answers at {self.shown_endpoint}: {_words(error)}. Start the server or "
                "correct --endpoint."
            ) from error
        if status in (401, 403):
            raise PeerError(
                f"{self.shown_endpoint} refuses the key ({status}). Give the right "
                "one with --api-key-file."
            )

    def complete(self, messages: Sequence[Mapping[str, str]], max_tokens: int) -> Completion:
        """One greedy answer. Raises PromptTooLong, PeerError."""
        started = time.perf_counter()
        waited = 0.0
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with self._http.stream(
                    "POST", f"{self.endpoint}/chat/completions",
                    json={
                        "model": self.model, "messages": list(messages), "max_tokens": max_tokens,
                        "temperature": 0, "stream": True,
                        "stream_options": {"include_usage": True},
                    },
                ) as response:  # fmt: skip
                    if response.status_code == 200:
                        return self._read(response, started, waited)
                    body = _beginning(response).decode(errors="replace")
                    pause = self._pause(response, body, attempt)
            except httpx.TimeoutException as error:
                raise PeerError(f"No answer within {self.timeout_s:g} s") from error
            except httpx.HTTPError as error:
                raise PeerError(f"The connection broke: {_words(error)}") from error
            time.sleep(pause)
            waited += pause
        raise PeerError(f"Still refused after {ATTEMPTS} attempts")

    def _pause(self, response: httpx.Response, body: str, attempt: int) -> float:
        """Seconds to wait before the next attempt. Raises when there is to be none."""
        status = response.status_code
        message = f"HTTP {status}: {_error_message(body)}"
        if status in (400, 413, 422) and any(words in body.lower() for words in _TOO_LONG):
            raise PromptTooLong(message)
        asked = _retry_after(response.headers.get("Retry-After", ""))
        if status not in RETRIED or asked is None or attempt == ATTEMPTS:
            raise PeerError(message)
        if asked > LONGEST_WAIT_S:
            raise PeerError(f"{message} (asks to wait {asked:g} s)")
        return asked

    def _in_time(self, response: httpx.Response, began: float) -> Iterator[str]:
        """The lines of an answer, also those that say nothing. Raises PeerError for one that takes
        longer than it may, or has a line without an end."""
        rest = ""
        for piece in response.iter_text():
            if time.perf_counter() - began > self.timeout_s:
                raise PeerError(f"The answer was not complete within {self.timeout_s:g} s")
            *lines, rest = (rest + piece).split("\n")
            yield from lines
            if len(rest) > LONGEST_LINE:
                raise PeerError(f"The stream has a line over {LONGEST_LINE:,} characters")
        yield rest

    def _read(self, response: httpx.Response, started: float, waited: float) -> Completion:
        text, finish, first = "", "", None
        usage: Mapping[str, Any] = {}
        for chunk in _chunks(self._in_time(response, started + waited)):
            if error := chunk.get("error"):
                raise PeerError(f"The stream ended with an error: {_error_message(error)}")
            for choice in chunk.get("choices") or ():
                words = (choice.get("delta") or {}).get("content") or ""
                if words and first is None:
                    first = 1000 * (time.perf_counter() - started)
                text += sound(words)
                finish = sound(str(choice.get("finish_reason") or finish))
            usage = chunk.get("usage") or usage
        if first is None:
            raise PeerError("The stream held no content")
        details = usage.get("prompt_tokens_details") or {}
        return Completion(
            text=text,
            finish_reason=finish,
            ttft_ms=first,
            total_ms=1000 * (time.perf_counter() - started),
            waited_ms=1000 * waited,
            prompt_tokens=int(usage.get("prompt_tokens") or 0),
            cached_tokens=int(details.get("cached_tokens") or 0),
            completion_tokens=int(usage.get("completion_tokens") or 0),
        )


def _url(endpoint: str) -> SplitResult:
    try:
        parts = urlsplit(endpoint)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            httpx.URL(endpoint)
            return parts
    except (ValueError, httpx.InvalidURL):  # as for "http://[" or a port of 99999
        pass
    raise PeerError(
        f"The endpoint {endpoint!r} is no URL. Give its base, such as http://127.0.0.1:8000/v1."
    )


def _beginning(response: httpx.Response) -> bytes:
    """What an error says; one that goes on and on is cut."""
    body = b""
    for piece in response.iter_bytes():
        body += piece
        if len(body) > LONGEST_ERROR:
            break
    return body


def _chunks(lines: Iterator[str]) -> Iterator[Mapping[str, Any]]:
    """The JSON objects of a stream of server-sent events, up to [DONE]. Raises PeerError."""
    for line in lines:
        if not line.startswith("data:"):
            continue
        data = line.removeprefix("data:").strip()
        if data == "[DONE]":
            return
        try:
            chunk = json.loads(data)
        except ValueError as error:
            raise PeerError(f"The stream holds no JSON: {data[:80]!r}") from error
        if not isinstance(chunk, dict):
            raise PeerError(f"The stream holds no object: {data[:80]!r}")
        yield chunk


def _retry_after(header: str) -> float | None:
    """Seconds of a Retry-After header, a number or a date; None without one."""
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _error_message(body: object) -> str:
    """The message of an OpenAI error envelope, or the beginning of whatever came."""
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except ValueError:
            return str(body)[:300]
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict) and "message" in inner:
            return sound(str(inner["message"])[:300])
    return sound(str(body)[:300])


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
