"""Who gets the next step when answers, questions and documents wait at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import torch

from backend.batch import Decode, Prefill, ReadBlocks
from backend.reading import DocumentReading
from backend.scheduler import DECODE_BURST, GROUP_SHARE, READING_TURN, Scheduler
from backend.sequence import Sequence
from backend.types import DocumentTokens
from kvstore.store import KVStore
from kvstore.types import KVShape


def unread() -> DocumentReading:
    """A document of one block that nobody reads."""
    store = KVStore(KVShape(1, 1, 4), 8, torch.float32)
    return DocumentReading(DocumentTokens("d", (1, 2), ((0, 2),)), "model", "format", store)


@dataclass(eq=False)
class Short:
    """A question of one prefill and a few decoding steps; stands for a Sequence."""

    left: int
    prompt_left: int = 10
    finished: bool = field(default=False)

    def step(self) -> None:
        self.left -= 1
        self.finished = self.left == 0


def test_short_questions_without_a_pause_do_not_starve_reading() -> None:
    scheduler = Scheduler(prefill_chunk=64)
    scheduler.add_reading(unread())
    blocks = answered = 0
    steps = 20 * READING_TURN
    for _ in range(steps):
        if not scheduler.sequences():
            # Ends long before a decoding burst would.
            question = cast("Sequence", Short(left=DECODE_BURST // 4))
            scheduler.add(question)
            scheduler.begin_filling(question)
        batch = scheduler.schedule(None)
        if isinstance(batch, ReadBlocks):
            blocks += 1
        elif isinstance(batch, Prefill):
            cast("Short", batch.sequence).prompt_left = 0
        elif isinstance(batch, Decode):
            for sequence in batch.sequences:
                short = cast("Short", sequence)
                short.step()
                answered += short.finished
        scheduler.sweep()
    assert blocks == steps // (READING_TURN + 1)
    assert answered > steps // DECODE_BURST


def test_missing_blocks_of_questions_do_not_starve_reading() -> None:
    scheduler = Scheduler(prefill_chunk=64)
    scheduler.add_reading(unread())
    wanted = ReadBlocks(unread(), (0,), cast("Sequence", Short(left=1)))
    given = [scheduler.schedule(wanted) for _ in range(2 * (READING_TURN + 1))]
    others = [index for index, batch in enumerate(given) if batch is not wanted]
    assert others == [READING_TURN, 2 * READING_TURN + 1]


def test_questions_alone_are_never_held_up() -> None:
    scheduler = Scheduler(prefill_chunk=64)
    question = cast("Sequence", Short(left=1, prompt_left=0))
    scheduler.add(question)
    scheduler.begin_filling(question)
    scheduler.sweep()
    batches = [scheduler.schedule(None) for _ in range(3 * READING_TURN)]
    assert all(isinstance(batch, Decode) for batch in batches)


def test_groups_are_smaller_while_somebody_waits() -> None:
    store = KVStore(KVShape(1, 1, 4), 8, torch.float32)
    blocks = tuple((first, first + 10) for first in range(0, 200, 10))
    document = DocumentTokens("d", tuple(range(200)), blocks)
    reading = DocumentReading(document, "model", "format", store)
    reading.want()
    scheduler = Scheduler(prefill_chunk=64, read_tokens=10 * 2 * GROUP_SHARE)
    scheduler.add_reading(reading)
    alone = scheduler.schedule(None)
    assert isinstance(alone, ReadBlocks)
    assert alone.indexes == tuple(range(2 * GROUP_SHARE))
    assert scheduler.group_tokens == 20 * GROUP_SHARE
    scheduler.add(cast("Sequence", Short(left=1)))
    assert scheduler.group_tokens == 20 * GROUP_SHARE
    beside = scheduler.schedule(None)
    assert isinstance(beside, ReadBlocks)
    assert beside.indexes == (0, 1)
    scheduler.begin_filling(scheduler.sequences()[0])
    assert scheduler.group_tokens == 20
