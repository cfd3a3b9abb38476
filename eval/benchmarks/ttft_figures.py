"""The figures of `bench ttft` in JSON: by round, and as medians of the rounds. Ratios are taken
within a round, before the median. It measures nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from eval.benchmarks.first_token import WholeRead

Fields = dict[str, object]
_Part = dict[str, float | int | bool | None] | None
PARTS = ("cold", "warm", "dense_cold", "dense_warm", "ratios")
"""Cold and warm figures never stand in one part."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One length in one round."""

    tokens: int
    ttft_any_ms: float
    any_read_tokens: int
    ttft_grounded_ms: float
    read_ms: float
    ttft_warm_ms: float
    dense: WholeRead | None

    def parts(self) -> dict[str, _Part]:
        """The figures by part; parts that were not measured are None.

        `dense_cold.ttft_at_least_ms` is the time that dense reading took: the first token can't
        have come sooner. It is the only figure there when the document is longer than the model's
        window (`ttft_grounded_ms` None), and the ratios are then lower bounds too.
        """
        parts: dict[str, _Part] = {
            "cold": {
                "ttft_any_ms": self.ttft_any_ms,
                "any_read_tokens": self.any_read_tokens,
                "ttft_grounded_ms": self.ttft_grounded_ms,
                "read_tokens_per_s": self.tokens / self.read_ms * 1e3,
            },
            "warm": {"ttft_warm_ms": self.ttft_warm_ms},
            "dense_cold": None,
            "dense_warm": None,
            "ratios": None,
        }
        if self.dense is None:
            return parts
        dense, asked = self.dense, self.dense.ttft_grounded_ms
        cold = dense.read_ms if asked is None else asked
        warm = dense.ttft_warm_ms
        parts["dense_cold"] = {
            "ttft_grounded_ms": asked,
            "ttft_at_least_ms": cold,
            "read_tokens_per_s": self.tokens / dense.read_ms * 1e3,
        }
        parts["dense_warm"] = {"ttft_warm_ms": warm}
        parts["ratios"] = {
            "lower_bound": asked is None,
            "dense_to_grounded": cold / self.ttft_grounded_ms,
            "dense_to_any": cold / self.ttft_any_ms,
            "dense_warm_to_warm": None if warm is None else warm / self.ttft_warm_ms,
        }
        return parts


def round_fields(number: int, found: Sequence[Figures]) -> Fields:
    """One round for the record."""
    return {
        "round": number,
        "figures": [{"tokens": figures.tokens, **figures.parts()} for figures in found],
    }


def summarise(rounds: Sequence[Sequence[Figures]]) -> Fields:
    """Medians: for each part one entry a length, without lengths that were not measured."""
    by_length: dict[int, list[dict[str, _Part]]] = {}
    for found in rounds:
        for figures in found:
            by_length.setdefault(figures.tokens, []).append(figures.parts())
    summary: Fields = {}
    for part in PARTS:
        entries = []
        for tokens, measured in sorted(by_length.items()):
            values = [one for parts in measured if (one := parts[part]) is not None]
            if values:
                entries.append({"tokens": tokens, **medians(values)})
        summary[part] = entries
    return summary


def medians(
    values: Sequence[Mapping[str, float | int | bool | None]],
) -> dict[str, float | int | bool | None]:
    """Key by key. What is no number (a label, or None) is the same in every round."""
    first = values[0]
    found: dict[str, float | int | bool | None] = {}
    for key, example in first.items():
        numbers = [value for one in values if (value := one[key]) is not None]
        if isinstance(example, bool) or example is None:
            found[key] = example
        else:
            found[key] = median(numbers)
    return found
