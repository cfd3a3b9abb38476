"""What a caller of `Engine.generate` holds: the events of one request, and the way to leave it."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator

from backend.errors import EngineClosed
from backend.sequence import Sequence
from backend.types import EngineTimings, TokenEvent, Usage


class TokenStream(Iterator[TokenEvent]):
    """Events up to the one with a `finish_reason`. For one thread.

    Closing it cancels the request, and so does dropping it, whether an event was taken or not.
    """

    def __init__(
        self, sequence: Sequence, alive: Callable[[], bool], leave: Callable[[Sequence], None]
    ) -> None:
        self._sequence = sequence
        self._alive = alive
        self._leave = leave
        self._over = False

    def __next__(self) -> TokenEvent:
        """Waits for the next event. Raises EngineClosed when the engine's thread is gone."""
        while not self._over:
            try:
                event = self._sequence.events.get(timeout=1.0)
            except queue.Empty:
                # Its last events were put before it ended.
                if self._alive() or not self._sequence.events.empty():
                    continue
                self.close()
                raise EngineClosed("The engine stopped while it answered") from None
            if event.finish_reason is not None:
                self.close()
            return event
        raise StopIteration

    def account(self) -> tuple[Usage, EngineTimings]:
        """What was spent so far: for who leaves before the last event, which tells it."""
        return self._sequence.usage, self._sequence.timings

    def close(self) -> None:
        """Take no more events."""
        if not self._over:
            self._over = True
            self._leave(self._sequence)

    def __del__(self) -> None:
        self.close()
