"""Whether new work may begin: questions, generations, ingestion jobs.

Closed while the server stops and while a GPU is too hot. What was let in before goes on,
also questions that still wait in the line and documents that wait in the engine. Knows neither who
asks nor HTTP.
"""

from __future__ import annotations

import threading
from typing import Final, Literal

from app.errors import NoNewWork
from app.hardware import HeatWatch

Phase = Literal["warming up", "serving", "stopping"]
STOPPING: Final = "server_stopping"


class Gate:
    """Thread-safe. Opens "serving", as one needs it who warms nothing up."""

    def __init__(self, heat: HeatWatch | None = None) -> None:
        self.heat = heat or HeatWatch()
        self._lock = threading.Lock()
        self._phase: Phase = "serving"

    @property
    def phase(self) -> Phase:
        """Where the server stands."""
        return self._phase

    @property
    def may_begin(self) -> bool:
        """Whether something new may begin now."""
        return self._phase != "stopping" and not self.heat.state.hot

    def warming_up(self) -> None:
        """The model has not answered anything yet. Questions are taken, and wait for it."""
        self._change("warming up")

    def serving(self) -> None:
        """The model has answered."""
        self._change("serving")

    def stop(self) -> None:
        """Nothing new begins any more; there is no way back."""
        self._change("stopping")

    def require_open(self) -> None:
        """Raises NoNewWork (`server_stopping` or `gpu_hot`)."""
        if self._phase == "stopping":
            raise NoNewWork("The server is stopping. Ask again when it is back.", code=STOPPING)
        if self.heat.state.hot:
            raise NoNewWork(
                f"The GPU is too hot for new questions ({self.heat.describe()}). Ask again when "
                "it has cooled down.",
                code="gpu_hot",
            )

    def _change(self, phase: Phase) -> None:
        with self._lock:
            if self._phase != "stopping":
                self._phase = phase
