"""The HTTP server with a beginning and an end: ready once the model has answered, and at the first
SIGTERM or Ctrl-C it takes no new questions while the running ones have some time left.

    serving   signal: nothing new begins, /readyz says "stopping"; the port stays open to say so
    draining  answers for which questions wait are their quotes alone, that these have theirs too;
              all are over, or `drain_s` has passed: what still runs is cancelled, with a last event
              that says why
    closing   the port closes, the last bytes go out, the services close
"""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import dataclass
from types import FrameType

import uvicorn

from app.answers import AnswerRuns
from app.cli.reporting import note
from app.completions import Completions
from app.gate import STOPPING
from app.services import Services
from app.warm_up import warm_up
from ui.ending import Ending

LAST_WORDS_SECONDS = 5.0
"""For answers to come to their end once they are cancelled: a step of the engine, and the
database."""


@dataclass(frozen=True, slots=True)
class Work:
    """What may run when the server is to stop."""

    services: Services
    runs: AnswerRuns
    completions: Completions

    @property
    def idle(self) -> bool:
        """Whether nobody waits for an answer."""
        return self.runs.idle and self.completions.idle

    def stop(self) -> None:
        """Cancels all answers, each with a last event that says why."""
        self.runs.stop_all(STOPPING)
        self.completions.stop_all()


class DrainingServer(uvicorn.Server):
    """One run. `failure` is why the model could not answer its first prompt."""

    def __init__(self, config: uvicorn.Config, ending: Ending, work: Work, *, ready: str) -> None:
        super().__init__(config)
        self.failure: Exception | None = None
        self._ending = ending
        self._work = work
        self._ready = ready
        self._drain_until: float | None = None
        self._hurried = False
        self._close_at: float | None = None
        work.services.gate.warming_up()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listens, and warms the model up beside it."""
        await super().startup(sockets)
        threading.Thread(target=self._warm, name="warm-up", daemon=True).start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal begins to drain; a second one ends the process."""
        self._ending.ask(sig)
        seconds = self._work.services.settings.drain_s
        self._work.services.gate.stop()
        self._drain_until = time.monotonic() + seconds
        if not self._work.idle:
            note(f"Stopping: running answers have {seconds:g} s. Once more ends at once.")

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: whether it is time to close."""
        if self._drain_until is not None:
            # Not in the signal's handler, which may have come while a lock was held.
            if not self._hurried:
                self._hurried = True
                self._work.runs.hurry()
            if self._is_drained(self._drain_until):
                self.should_exit = True
        return await super().on_tick(counter)

    def _is_drained(self, until: float) -> bool:
        now = time.monotonic()
        if self._work.idle:
            return True
        if self._close_at is None and now >= until:
            self._work.stop()
            self._close_at = now + LAST_WORDS_SECONDS
        return self._close_at is not None and now >= self._close_at

    def _warm(self) -> None:
        services = self._work.services
        try:
            warm_up(services.engine)
        except Exception as error:
            if not self._ending.asked:
                # Raised again where the server was started, once it has closed.
                self.failure = error
                self.should_exit = True
            return
        services.gate.serving()
        if services.gate.phase == "serving":
            note(self._ready)
