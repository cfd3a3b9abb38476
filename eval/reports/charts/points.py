"""Values that charts draw. Runs appear as places in the legend, never by name."""

from __future__ import annotations

from dataclasses import dataclass

from eval.statistics import Estimate


@dataclass(frozen=True, slots=True)
class Point:
    """One run in a scatter: a time in milliseconds and a quality, each with its interval."""

    letter: str
    place: int
    speed: Estimate
    quality: Estimate


@dataclass(frozen=True, slots=True)
class Line:
    """One run over classes (of length, of depth); None where it has no sample."""

    letter: str
    place: int
    values: tuple[Estimate | None, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """The times of one run or kind of request, in milliseconds. `label` is our own word."""

    label: str
    place: int
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """One request: its stages in the order they happened, as (stage, milliseconds), from `start`
    on. `mark` is the moment of something on the way; a failed request ends with a cross."""

    stages: tuple[tuple[int, float], ...]
    start: float = 0.0
    mark: float | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Spot:
    """One point of a curve: the median over rounds and the lowest and highest round. `bound`: the
    true value is this or more."""

    at: float
    middle: float
    low: float
    high: float
    bound: bool = False


@dataclass(frozen=True, slots=True)
class Curve:
    """A named series. The name is our own word, never text from a file."""

    name: str
    spots: tuple[Spot, ...]
