"""Cuts the engine's stream of tokens into whole sentences.

Keeps the account of the stream's last event; knows nothing of what the sentences say.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator

from backend.errors import BackendError
from backend.types import EngineTimings, TokenEvent, Usage

_SENTENCE_END = re.compile(r"[。！？；\n]+[”」’]?|[.!?]+[”\"’)]?(?=\s+[\"“A-Z(]|\n)")


class SentenceStream:
    """One stream read sentence by sentence; `finish_reason`, `usage`, `timings` and `error` are
    those of its last event."""

    def __init__(self) -> None:
        self.finish_reason = "stop"
        self.usage: Usage | None = None
        self.timings: EngineTimings | None = None
        self.error = ""

    def read(self, events: Iterator[TokenEvent], cancelled: threading.Event) -> Iterator[str]:
        """Whole sentences, each with the white space that follows it left out. Raises BackendError
        when the stream ends with an error."""
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
