"""The way into the engine's thread: what others ask of it, in the order in which they asked."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import TypeVar

from backend.errors import EngineClosed

_T = TypeVar("_T")


class Mailbox:
    """Commands that the engine's thread takes and runs. All but `take` is safe from any thread."""

    def __init__(self, alive: Callable[[], bool]) -> None:
        """`alive`: whether the thread that takes them runs."""
        self._alive = alive
        self._commands: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._closed = False

    @property
    def open(self) -> bool:
        """Whether what is sent will be run."""
        return not self._closed and self._alive()

    @property
    def empty(self) -> bool:
        """Whether nothing waits to be taken."""
        return self._commands.empty()

    def send(self, command: Callable[[], None]) -> None:
        """Have a command run. Raises EngineClosed."""
        if not self.open:
            raise EngineClosed("The engine is closed; restart the server")
        self._commands.put(command)

    def wake(self) -> None:
        """Have the thread look around, if it sleeps."""
        self._commands.put(lambda: None)

    def call(self, job: Callable[[], _T]) -> _T:
        """Run `job` in the engine's thread and wait for its result. Raises EngineClosed, and
        whatever `job` raises."""
        answers: queue.SimpleQueue[tuple[_T | None, BaseException | None]] = queue.SimpleQueue()

        def run() -> None:
            try:
                answers.put((job(), None))
            except Exception as error:
                answers.put((None, error))

        self.send(run)
        while True:
            try:
                result, error = answers.get(timeout=1.0)
                break
            except queue.Empty:
                if not self._alive():
                    raise EngineClosed("The engine stopped while it worked") from None
        if error is not None:
            raise error
        return result  # type: ignore[return-value]

    def take(self) -> Callable[[], None] | None:
        """The next command, waiting for it. None: the mailbox was closed, nothing follows."""
        return self._commands.get()

    def close(self) -> bool:
        """Take no more. Returns False when it was closed before."""
        first, self._closed = not self._closed, True
        if first:
            self._commands.put(None)
        return first
