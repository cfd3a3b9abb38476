"""The GPUs of this process: which they are, and a thread that watches how hot they get.

Without a GPU, or where nothing can be read from it, the watch is off and says why. Knows no
questions and no HTTP.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from app.settings import Settings
from backend.errors import SensorError
from backend.hardware.heat import HeatGuard
from backend.hardware.types import HeatState

if TYPE_CHECKING:
    from backend.hardware.nvml import Nvml

_log = logging.getLogger(__name__)

LOOK_S = 2.0
"""Between two looks. A GPU under full load warms by a few degrees in that time."""
FORGET_S = 10.0
"""After that what the last look told counts as unknown: the thread that looks has died or hangs."""


class HeatWatch:
    """Looks at a guard every `every_s` seconds; without one it is off, for the reason `why_off`."""

    def __init__(
        self,
        guard: HeatGuard | None = None,
        *,
        why_off: str = "",
        every_s: float = LOOK_S,
        forget_s: float = FORGET_S,
    ) -> None:
        """`forget_s`: without a look for so long nothing is known, and nothing is paused."""
        self.guard = guard
        self.why_off = why_off
        self._every_s = every_s
        self._forget_s = forget_s
        self._looked = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def state(self) -> HeatState:
        """By the last look; never hot while it is off, or when the last look is long ago."""
        if self.guard is None:
            return HeatState(hot=False)
        state, thread = self.guard.state, self._thread
        if thread is None:
            return state
        age = time.monotonic() - self._looked
        if age <= self._forget_s:
            return state
        why = "hangs" if thread.is_alive() else "has ended; restart the server to watch the heat"
        problem = f"no look for {age:.0f} s: the thread {thread.name!r} {why}"
        return HeatState(False, (), problem, state.errors)

    def start(self) -> None:
        """Look once and then again and again."""
        if self.guard is not None:
            self._look(self.guard)
            self._thread = threading.Thread(target=self._watch, name="heat", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        if self.guard is not None:
            try:
                self.guard.close()
            except Exception as error:
                known = isinstance(error, SensorError)
                _log.warning("%s", error, exc_info=None if known else error)

    def describe(self) -> str:
        """The temperatures with the limits, or why they are not known."""
        if self.guard is None:
            return f"off: {self.why_off}" if self.why_off else "off"
        state = self.state
        limits = f"no new work at {self.guard.pause_c:g} C until {self.guard.resume_c:g} C"
        if state.problem:
            return f"temperature unknown ({state.problem}); {limits}"
        cards = [
            f"{one.name}: core {_degrees(one.core_c)}, memory {_degrees(one.memory_c)}"
            for one in state.temperatures
        ]
        return f"{'; '.join(cards)}; {limits}"

    def _watch(self) -> None:
        while not self._stop.wait(self._every_s):
            if self.guard is not None:
                self._look(self.guard)

    def _look(self, guard: HeatGuard) -> None:
        guard.look()
        self._looked = time.monotonic()


def open_heat_watch(settings: Settings) -> HeatWatch:
    """A watch on the GPU that the settings choose. Does not fail: what can't be watched is off."""
    try:
        sensor = open_sensor(settings)
    except SensorError as error:
        return HeatWatch(why_off=str(error))
    return HeatWatch(
        HeatGuard(sensor, pause_c=settings.gpu_pause_c, resume_c=settings.gpu_resume_c)
    )


def open_sensor(settings: Settings) -> Nvml:
    """NVML for the GPU that the settings choose. Raises SensorError, also where no GPU is used."""
    if settings.remote_servers:
        raise SensorError("the model runs on other servers")
    uuid = gpu_in_use(settings)
    if uuid is None:
        raise SensorError("no GPU is used")
    # Here, because it is of no use without a GPU.
    from backend.hardware.nvml import Nvml

    return Nvml([uuid])


def gpu_in_use(settings: Settings) -> str | None:
    """UUID of the GPU that the engine runs on, None for the CPU. Raises SensorError for a GPU that
    is not there."""
    import torch

    if settings.device == "cpu" or not torch.cuda.is_available():
        return None
    _, _, number = settings.device.partition(":")
    index = int(number or 0)
    if index >= torch.cuda.device_count():
        raise SensorError(f"torch knows no {settings.device}")
    return str(torch.cuda.get_device_properties(index).uuid)


def _degrees(value: int | None) -> str:
    return "unknown" if value is None else f"{value} C"
