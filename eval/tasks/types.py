"""Values of the task generator. Spans are half-open, in Unicode code points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from eval.types import EvalDocument, Span

TaskName = Literal["single", "multi-key", "multi-value", "variable-tracking", "aggregation"]
TASK_NAMES: tuple[TaskName, ...] = get_args(TaskName)
SWEPT: frozenset[TaskName] = frozenset({"single", "multi-key"})
"""Tasks with one fact to be found, which is planted at each depth in turn. The facts of the others
are spread over the whole document."""


@dataclass(frozen=True, slots=True)
class Needle:
    """A sentence to plant at `depth` (0: start of the document, 1: end)."""

    text: str
    depth: float


@dataclass(frozen=True, slots=True)
class Place:
    """The characters `span` of a plan's needle number `needle`."""

    needle: int
    span: Span


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a plan. `answer` is None when nothing that was planted answers it."""

    question: str
    answer: str | None = None
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What is planted in one document and asked about it."""

    needles: tuple[Needle, ...]
    asked: tuple[Asked, ...]


@dataclass(frozen=True, slots=True)
class Generated:
    """A document with its length in tokens, by the tokenizer that it was made for."""

    document: EvalDocument
    tokens: int
