"""Mixtures of experts: each token goes through a few of many gated MLPs, chosen by a router.

Source: DeepSeek-AI, DeepSeek-V2 (arXiv 2405.04434) and DeepSeek-V3 (arXiv 2412.19437). Plain torch:
one expert after another, each with the rows that chose it. On a GPU the choice is waited for, so a
step can't be recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional

from backend.config import ExpertsShape
from backend.models.layers import GatedMlp, TensorSource

_LEAST = 1e-20
"""Added to a sum of weights before it divides them."""


@dataclass(frozen=True, slots=True)
class Router:
    """Chooses experts: `weight` [experts, hidden] and, for sigmoid scores, what is added to them
    for choosing only, `correction` [experts], both in float32."""

    shape: ExpertsShape
    weight: torch.Tensor
    correction: torch.Tensor | None

    def __call__(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The experts of each of [n, hidden] rows and their weights, both [n, chosen]."""
        shape = self.shape
        logits = functional.linear(rows.float(), self.weight)
        scores = logits.softmax(-1) if self.correction is None else logits.sigmoid()
        judged = scores if self.correction is None else scores + self.correction
        if shape.chosen_groups < shape.groups:
            judged = self._within_groups(judged)
        chosen = judged.topk(shape.chosen, -1, sorted=False).indices
        weights = scores.gather(1, chosen)
        if shape.normalised:
            weights = weights / (weights.sum(-1, keepdim=True) + _LEAST)
        return chosen, weights * shape.factor

    def _within_groups(self, judged: torch.Tensor) -> torch.Tensor:
        """The scores, -inf outside the best groups."""
        shape = self.shape
        grouped = judged.unflatten(1, (shape.groups, -1))
        best = 1 if self.correction is None else 2
        merits = grouped.topk(best, -1).values.sum(-1)
        kept = merits.topk(shape.chosen_groups, -1, sorted=False).indices
        hidden = torch.ones_like(merits, dtype=torch.bool).scatter_(1, kept, False)
        left: torch.Tensor = grouped.masked_fill(hidden[..., None], float("-inf"))
        return left.flatten(1)


@dataclass(frozen=True, slots=True)
class Experts:
    """The MLP of a layer: what the chosen experts give, weighted, and the shared one."""

    router: Router
    experts: tuple[GatedMlp, ...]
    shared: GatedMlp | None

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """[n, hidden] to [n, hidden]."""
        chosen, weights = self.router(rows)
        sums = torch.zeros(rows.shape, dtype=torch.float32, device=rows.device)
        for index in chosen.unique().tolist():
            row, place = (chosen == index).nonzero(as_tuple=True)
            given = self.experts[index](rows[row]).float()
            sums.index_add_(0, row, given.mul_(weights[row, place, None]))
        if self.shared is not None:
            sums += self.shared(rows)
        return sums.to(rows.dtype)


def load_experts(shape: ExpertsShape, source: TensorSource, at: str, bias: bool) -> Experts:
    """The experts whose tensors' names begin with `at`; `bias` is for the shared one."""
    sigmoid = shape.scoring == "sigmoid"
    correction = source.exact(f"{at}gate.e_score_correction_bias") if sigmoid else None
    shared = source.mlp(f"{at}shared_experts.", bias) if shape.shared_width else None
    return Experts(
        Router(shape, source.exact(f"{at}gate.weight"), correction),
        tuple(source.mlp(f"{at}experts.{index}.", False) for index in range(shape.count)),
        shared,
    )
