"""Arms of the protocol: the engine as it is, and with one of its switches off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import torch

from app.errors import BadParameter
from backend.engine_config import EngineConfig
from backend.loader import load_checkpoint
from eval.benchmarks.engine_settings import EngineChoice
from eval.benchmarks.mixed.choices import CELLS
from eval.benchmarks.random_model import shape_config
from kvstore.formats import page_format
from kvstore.pool import page_bytes
from kvstore.types import PAGE_TOKENS

Order = Literal["at once", "read first", "dense"]


@dataclass(frozen=True, slots=True)
class Arm:
    """`changes` are of the engine's settings. `order`: when the first question comes (see
    `eval.benchmarks.protocol.visit`). Without `reuse` the engine forgets a document as soon as its
    request is over. `cells` are those that it is measured in."""

    name: str
    changes: Mapping[str, object] = field(default_factory=dict)
    order: Order = "at once"
    reuse: bool = True
    cells: tuple[str, ...] = CELLS

    @property
    def dense(self) -> bool:
        """Whether a document is one block, in which every token attends to all before it."""
        return self.order == "dense"


FULL = "full"
ARMS = {
    arm.name: arm
    for arm in (
        Arm(FULL),
        Arm("evidence_last", order="read first"),
        Arm("first_come", {"first_come": True}),
        Arm("block_by_block", {"read_tokens": 1}),
        # A cold load has nothing to reuse: there it is the whole engine.
        Arm("no_reuse", reuse=False, cells=("mixed",)),
        Arm("no_guessing", {"guessed_tokens": 0}),
        Arm("dense", {"first_come": True}, order="dense", reuse=False),
    )
}
"""`dense` is the baseline: dense attention, first come first served, no reuse."""

_ARENA_LEFT = 0.85
"""Of a KV budget at least so much is for pages of documents."""
_SPARE_PAGES = 64


def choose_arms(written: str | None) -> tuple[Arm, ...]:
    """ "full,dense:mixed" -> those arms, the second in one cell only; None is all of them. Raises
    BadParameter."""
    if written is None:
        return tuple(ARMS.values())
    chosen: dict[str, Arm] = {}
    for part in written.split(","):
        name, colon, cell = part.strip().partition(":")
        if name not in ARMS:
            raise BadParameter(f"No arm {name!r}; there are {', '.join(ARMS)}")
        if colon and cell not in CELLS:
            raise BadParameter(f"{part.strip()!r}: an arm's cell is {' or '.join(CELLS)}")
        cells = (cell,) if colon else ARMS[name].cells
        if name in chosen:
            cells = tuple(one for one in CELLS if one in {*chosen[name].cells, *cells})
        chosen[name] = replace(ARMS[name], cells=cells)
    return tuple(chosen[name] for name in ARMS if name in chosen)


def arm_config(arm: Arm, config: EngineConfig, choice: EngineChoice, longest: int) -> EngineConfig:
    """The engine's settings in this arm. On a GPU, dense reading of `longest` tokens needs the
    memory that the pool would take: the pool is then no larger than one such document, unless the
    command line says how large. Raises CheckpointError."""
    if arm.dense and config.device != "cpu" and choice.kv_budget_mb is None:
        pages = -(-longest // PAGE_TOKENS) + _SPARE_PAGES
        config = replace(config, kv_budget=int(pages * _page_bytes(config, choice) / _ARENA_LEFT))
    return replace(config, **dict(arm.changes))  # type: ignore[arg-type]


def _page_bytes(config: EngineConfig, choice: EngineChoice) -> int:
    """Bytes of a page on a GPU."""
    named = choice.shape
    model = load_checkpoint(config.model).config if named is None else shape_config(named)
    dtype = torch.float32 if config.resolved_precision() == "float32" else torch.bfloat16
    return page_bytes(model.kv_shape, page_format(config.kv_format, dtype))
