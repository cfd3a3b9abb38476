"""When GPUs are too hot for new work, and when they may have some again.

Two limits, so that a GPU near one of them does not go on and off: at `pause_c` it pauses, and only
at `resume_c` it goes on. A sensor that fails never stops the work for long; the card protects
itself. Knows neither NVML nor what the work is.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from backend.errors import SensorError
from backend.hardware.types import HeatState, Temperature

_log = logging.getLogger(__name__)

FORGIVEN_LOOKS = 3
"""Failed looks in a row after which a pause ends: one lost reading must not end it."""


class Sensor(Protocol):
    """What tells temperatures: NVML, or a test."""

    def temperatures(self) -> Sequence[Temperature]:
        """Of each GPU, now. Raises SensorError."""

    def close(self) -> None:
        """Ask no more."""


class HeatGuard:
    """Call `look` from one thread; read `state` from any."""

    def __init__(self, sensor: Sensor, *, pause_c: float, resume_c: float) -> None:
        """Degrees Celsius; `resume_c` lies below `pause_c`."""
        self.pause_c = pause_c
        self.resume_c = resume_c
        self._sensor = sensor
        self._failed_in_a_row = 0
        self._state = HeatState(hot=False)

    @property
    def state(self) -> HeatState:
        """By the last look."""
        return self._state

    def look(self) -> HeatState:
        """Read the sensor and decide."""
        before = self._state
        try:
            temperatures = tuple(self._sensor.temperatures())
        except SensorError as error:
            self._state = self._after_failure(str(error))
            return self._state
        except Exception as error:
            # A library that fails in a way of its own fails all the same.
            if not before.problem:
                _log.error("the look at the temperature failed", exc_info=error)
            self._state = self._after_failure(f"{type(error).__name__}: {error}")
            return self._state
        if before.problem:
            _log.info("the temperature of the GPU is known again")
        self._failed_in_a_row = 0
        now = HeatState(False, temperatures, errors=before.errors)
        self._state = replace(now, hot=self._is_hot(now.hottest_c, before.hot))
        if self._state.hot != before.hot:
            word = "no new work begins" if self._state.hot else "new work may begin again"
            _log.warning("the GPU is at %s C: %s", now.hottest_c, word)
        return self._state

    def _is_hot(self, hottest_c: int | None, was_hot: bool) -> bool:
        if hottest_c is None:
            return False
        return hottest_c > self.resume_c if was_hot else hottest_c >= self.pause_c

    def close(self) -> None:
        """Let the sensor go."""
        self._sensor.close()

    def _after_failure(self, problem: str) -> HeatState:
        before = self._state
        self._failed_in_a_row += 1
        if not before.problem:
            _log.warning("the temperature of the GPU is unknown: %s", problem)
        hot = before.hot and self._failed_in_a_row < FORGIVEN_LOOKS
        return HeatState(hot, (), problem, before.errors + 1)
