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
from urllib.parse import urlsplit, urlunsplit

import httpx

from eval.errors import PeerError

RETRIED = (429, 503)
ATTEMPTS = 5
LONGEST_WAIT_S = 120.0
"""A server that asks for a longer pause than this ends the sample."""
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
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise PeerError(
                f"The endpoint {endpoint!r} is no URL. Give its base, such as "
                "http://127.0.0.1:8000/v1."
            )
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
            response = self._http.get(f"{self.endpoint}/models")
        except httpx.HTTPError as error:
            raise PeerError(
                f"Nobody answers at {self.shown_endpoint}: {_words(error)}. Start the server or "
                "correct --endpoint."
            ) from error
        if response.status_code in (401, 403):
            raise PeerError(
                f"{self.shown_endpoint} refuses the key ({response.status_code}). Give the right "
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
                    body = response.read().decode(errors="replace")
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

    def _read(self, response: httpx.Response, started: float, waited: float) -> Completion:
        text, finish, first = "", "", None
        usage: Mapping[str, Any] = {}
        for chunk in _chunks(response):
            if time.perf_counter() - started - waited > self.timeout_s:
                raise PeerError(f"The answer was not complete within {self.timeout_s:g} s")
            if error := chunk.get("error"):
                raise PeerError(f"The stream ended with an error: {_error_message(error)}")
            for choice in chunk.get("choices") or ():
                words = (choice.get("delta") or {}).get("content") or ""
                if words and first is None:
                    first = 1000 * (time.perf_counter() - started)
                text += words
                finish = choice.get("finish_reason") or finish
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


def _chunks(response: httpx.Response) -> Iterator[Mapping[str, Any]]:
    """The JSON objects of a stream of server-sent events, up to [DONE]. Raises PeerError."""
    for line in response.iter_lines():
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
            return str(inner["message"])[:300]
    return str(body)[:300]


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
