"""Finds stop strings in streamed text, across the borders of its pieces. It knows no tokens."""

from __future__ import annotations

from collections.abc import Sequence

from backend.errors import InvalidSampling


class StopMatcher:
    """Holds back only what may still become a stop string.

    Where several stop strings occur, the one that ends first wins, and of those that end together
    the longest; so the result does not depend on how the text is cut into pieces. Neither the stop
    string nor what follows it is ever given out.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        """Raises InvalidSampling for an empty stop string."""
        if any(stop == "" for stop in stops):
            raise InvalidSampling("stop holds an empty string; leave it out")
        self._stops = tuple(dict.fromkeys(stops))
        self._held = ""
        self.stopped = False

    def push(self, text: str) -> tuple[str, bool]:
        """(text that is safe to emit, whether a stop string was met now or before)."""
        if self.stopped:
            return "", True
        buffer = self._held + text
        found = [(buffer.find(stop), len(stop)) for stop in self._stops]
        ends = [(start + length, start) for start, length in found if start >= 0]
        if ends:
            self.stopped, self._held = True, ""
            return buffer[: min(ends)[1]], True
        keep = self._held_back(buffer)
        self._held = buffer[len(buffer) - keep :]
        return buffer[: len(buffer) - keep], False

    def flush(self) -> str:
        """The text held back, at the end of the stream; nothing after a stop."""
        rest, self._held = self._held, ""
        return rest

    def _held_back(self, buffer: str) -> int:
        """Length of the longest end of `buffer` that begins a stop string."""
        longest = max((len(stop) - 1 for stop in self._stops), default=0)
        for length in range(min(longest, len(buffer)), 0, -1):
            end = buffer[-length:]
            if any(stop.startswith(end) for stop in self._stops):
                return length
        return 0
