"""Values that the hardware's sensors give."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Temperature:
    """Of one GPU, degrees Celsius. `gpu` is its UUID; a sensor that it lacks is None."""

    gpu: str
    name: str
    core_c: int | None
    memory_c: int | None

    @property
    def hottest_c(self) -> int | None:
        """The higher of the two, None when neither is known."""
        known = [degrees for degrees in (self.core_c, self.memory_c) if degrees is not None]
        return max(known, default=None)


@dataclass(frozen=True, slots=True)
class GPUState:
    """One GPU as the driver sees it, whoever uses it. `links` are its active NVLinks."""

    uuid: str
    name: str
    free_bytes: int
    total_bytes: int
    links: int


@dataclass(frozen=True, slots=True)
class Memory:
    """Of one device, in bytes: what can be had now, and what there is altogether."""

    free: int
    total: int


@dataclass(frozen=True, slots=True)
class HeatState:
    """Whether the GPUs are too hot for new work, by the last look. `problem` says why nothing is
    known, empty while the sensor answers; `errors` counts looks that failed."""

    hot: bool
    temperatures: tuple[Temperature, ...] = ()
    problem: str = ""
    errors: int = 0

    @property
    def hottest_c(self) -> int | None:
        """The highest temperature of all GPUs, None when none is known."""
        known = [one.hottest_c for one in self.temperatures if one.hottest_c is not None]
        return max(known, default=None)
