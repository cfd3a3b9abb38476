"""The figures that reports compare, in their order, and how each is printed.

Knows the names that `eval.metrics` gives them; computes none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eval.statistics import FEWEST_GROUPS, Estimate

Better = Literal["higher", "lower"]


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure. `digits` after the point; `percent` prints a share of one as per cent."""

    key: str
    title: str
    better: Better
    percent: bool = True
    digits: int = 1

    @property
    def heading(self) -> str:
        """The title with an arrow to the better side."""
        return f"{self.title} {'↑' if self.better == 'higher' else '↓'}"

    def text(self, value: float | None) -> str:
        """A value as it is printed; a dash where the measure does not apply."""
        if value is None:
            return "–"
        return f"{100 * value:.{self.digits}f}%" if self.percent else f"{value:,.{self.digits}f}"

    def difference(self, value: float | None) -> str:
        """A difference of two values, with its sign; of shares, in percentage points."""
        if value is None:
            return "–"
        shown = f"{100 * value if self.percent else value:+,.{self.digits}f}"
        # Rounding may leave "-0.0", which reads as a loss.
        return f"{0:.{self.digits}f}" if float(shown.replace(",", "")) == 0 else shown

    def worse(self, value: float, than: float) -> bool:
        """Whether `value` is strictly worse."""
        return value < than if self.better == "higher" else value > than

    def best(self, values: list[float]) -> float:
        """The best of one or more values."""
        return max(values) if self.better == "higher" else min(values)


NO_INTERVAL = f"under {FEWEST_GROUPS} documents"

QUALITY = (
    Measure("f1", "token F1", "higher"),
    Measure("em", "exact match", "higher"),
    Measure("rouge_l", "ROUGE-L", "higher"),
    Measure("number_accuracy", "figures right", "higher"),
    Measure("unmarked_wrong_figures", "unmarked wrong figures per answer", "lower", False, 3),
    Measure("citation_hit", "citation hit", "higher"),
    Measure("citation_verified", "quotes verified", "higher"),
    Measure("refusal_accuracy", "refused where nothing is stated", "higher"),
    Measure("false_refusal", "refused though an answer is there", "lower"),
    Measure("recall_at_1", "recall@1", "higher"),
    Measure("recall_at_5", "recall@5", "higher"),
    Measure("recall_at_10", "recall@10", "higher"),
    Measure("answer_nll", "answer NLL, nats per token", "lower", False, 3),
)
"""In the order of the tables; the keys are those of a run's summary."""

BY_KEY = {measure.key: measure for measure in QUALITY}


def interval_text(measure: Measure, found: Estimate | None) -> str:
    """The 95% interval of a mean, or why there is none."""
    if found is None:
        return ""
    if found.low is None or found.high is None:
        return NO_INTERVAL
    return f"{measure.text(found.low)} to {measure.text(found.high)}"


def difference_interval_text(measure: Measure, found: Estimate | None) -> str:
    """The same of a difference."""
    if found is None:
        return ""
    if found.low is None or found.high is None:
        return NO_INTERVAL
    return f"{measure.difference(found.low)} to {measure.difference(found.high)}"


def milliseconds(value: float | None) -> str:
    """A time as people read it: three digits or so."""
    if value is None:
        return "–"
    if value >= 10_000:
        return f"{value / 1000:,.1f} s"
    if value >= 100:
        return f"{value:,.0f} ms"
    return f"{value:.1f} ms" if value >= 10 else f"{value:.2g} ms"
