"""Looks around between two layers of a step: on a CPU a step takes half a second, and several times
that beside other programs, while whoever left or cancelled is to be gone within one.

Requests that were cancelled end there and then, but for those that the step is for; a step that
nobody waits for any more is left. Knows no model. Owned by the engine's thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from backend.batch import Batch, Prefill, ReadBlocks
from backend.scheduler import Scheduler
from backend.sequence import Sequence


class StepLeft(Exception):
    """Nobody waits for this step any more. What it was doing is undone as after a failure."""


class StepWatch:
    """`look` is called between layers."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._batch: Batch | None = None

    @contextmanager
    def during(self, batch: Batch) -> Iterator[None]:
        """Around the run of a batch. It ends quietly when it is left."""
        self._batch = batch
        try:
            yield
        except StepLeft:
            pass
        finally:
            self._batch = None

    def look(self) -> None:
        """End those that were cancelled meanwhile. Raises StepLeft when the step is for nobody
        else; does nothing outside of steps."""
        if self._batch is None:
            return
        served = _served(self._batch)
        for sequence in self._scheduler.sequences():
            # Their contexts are at work, and end with the step.
            if sequence.cancelled and sequence not in served:
                sequence.cancel()
        if served:
            left = all(sequence.cancelled for sequence in served)
        else:
            left = isinstance(self._batch, ReadBlocks) and self._batch.reading.cancelled
        if left:
            raise StepLeft


def _served(batch: Batch) -> tuple[Sequence, ...]:
    """The requests that a step is for; none where it is for a document."""
    if isinstance(batch, ReadBlocks):
        return () if batch.asker is None else (batch.asker,)
    return (batch.sequence,) if isinstance(batch, Prefill) else batch.sequences
