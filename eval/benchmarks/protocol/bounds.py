"""Figures of which some are only known to be no smaller than a value, and their percentiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Bound:
    """A measured value; with `at_least` the true one may be larger, by how much is not known."""

    value: float
    at_least: bool = False

    def fields(self) -> dict[str, object]:
        """The value for the record."""
        return {"value": self.value, "at_least": self.at_least}


def percentile(values: Sequence[Bound], share: float) -> Bound | None:
    """Linear between order statistics; None of no values.

    It is a lower bound when a value that it rests on, or one before those, is: the true order may
    be another then. Larger true values never make it smaller.
    """
    if not values:
        return None
    ordered = sorted(values, key=lambda one: (one.value, one.at_least))
    last = math.ceil(share / 100 * (len(ordered) - 1))
    value = float(np.percentile([one.value for one in ordered], share))
    return Bound(value, any(one.at_least for one in ordered[: last + 1]))


def middle(values: Sequence[Bound]) -> Bound | None:
    """The median."""
    return percentile(values, 50)


def ratio(value: Bound | None, base: Bound | None) -> Bound | None:
    """How many times `base` a value is; None when one is missing or the base is only a bound."""
    if value is None or base is None or base.at_least or base.value <= 0:
        return None
    return Bound(value.value / base.value, value.at_least)
