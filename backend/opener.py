"""Gives waiting requests their contexts, in turn, or says which blocks must be read before.

Holds the blocks of requests under way, so that they are not dropped while others are read. Knows no
steps. Owned by the engine's thread, but for `plan`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Sequence as SequenceOf
from itertools import chain

from backend.batch import Batch, ReadBlocks
from backend.context_plan import ContextPlan, plan_context
from backend.errors import BackendError, OutOfMemory, UnknownDocument
from backend.failures import describe_failure
from backend.opening import demand
from backend.paged.arena import PagedContext
from backend.reading import DocumentReading
from backend.runner import Runner
from backend.scheduler import Scheduler
from backend.sequence import Sequence
from backend.types import Request
from backend.working_memory import WorkingMemory
from kvstore.errors import KVStoreError
from kvstore.store import KVStore

_log = logging.getLogger(__name__)


class Opener:
    """`stalled`: a request was looked at for which all that is missing is on its way from the
    disk, and there is nothing to open or to read for another."""

    def __init__(
        self,
        scheduler: Scheduler,
        runner: Runner,
        store: KVStore,
        memory: WorkingMemory,
        documents: Mapping[str, DocumentReading],
        fill: Callable[[Sequence, ContextPlan], None],
    ) -> None:
        """`documents` by key, as they become known. `fill` opens the context of a request whose
        blocks are all there."""
        self._scheduler = scheduler
        self._runner = runner
        self._store = store
        self._memory = memory
        self._documents = documents
        self._fill = fill
        self._held: dict[Sequence, set[bytes]] = {}
        # What each request lacked when it was looked at last.
        self._missing: dict[Sequence, list[bytes]] = {}
        self.stalled = False

    def plan(self, request: Request) -> ContextPlan:
        """What the request is to see. Raises RequestTooLarge, and UnknownDocument for one whose
        document is not there any more. Safe from any thread."""
        if request.document_key is None:
            return plan_context(request, None)
        reading = self._documents.get(request.document_key)
        if reading is None:
            raise UnknownDocument("The document was deleted while its question waited")
        return plan_context(request, reading)

    def next_blocks(self) -> ReadBlocks | None:
        """Open the next request that can be opened, or return the blocks that the next one lacks;
        None too when all has to wait. A request that can't be opened ends."""
        self.stalled = False
        opening = self._scheduler.to_open()
        for sequence in opening:
            sequence.start()
            try:
                wanted = self._try(sequence, opening)
            except (BackendError, KVStoreError) as error:
                self._end(sequence, str(error))
                continue
            except Exception as error:
                # Out of memory, say: the request ends, not the engine.
                _log.exception("a request's context could not be opened")
                self._end(sequence, describe_failure(error))
                continue
            if wanted is not None or sequence.context is not None or not self.stalled:
                self.stalled = False
                return wanted
        return None

    def hold(self, sequence: Sequence, plan: ContextPlan) -> None:
        """Keep what is there of the request's blocks while the others are read."""
        self._hold(sequence, plan.block_keys())

    def keep(self, batch: Batch) -> None:
        """Hold the blocks that a step has read for a request: the next step may be for another,
        which would take their pages."""
        if isinstance(batch, ReadBlocks) and batch.asker is not None and not batch.asker.finished:
            keys = [batch.reading.keys[index] for index in batch.indexes]
            self._hold(batch.asker, keys)

    def let_go(self) -> None:
        """Contexts hold copies: once one is open, or its request is over, its blocks may go."""
        for sequence in [s for s in self._held if _is_over(s)]:
            self._unhold(sequence)
        for sequence in [s for s in self._missing if _is_over(s)]:
            del self._missing[sequence]

    def holding(self) -> bool:
        """Whether blocks are held for requests that wait."""
        return any(self._held.values())

    def make_way(self, sequence: Sequence) -> bool:
        """Let go what is held for all other requests, because it leaves this one no room. False
        when nothing was. One that waits is opened before them: of two that each take the other's
        blocks none would ever be."""
        others = [one for one, keys in self._held.items() if one is not sequence and keys]
        for one in others:
            self._unhold(one)
        if others and sequence in self._scheduler.sequences():
            self._scheduler.serve_alone(sequence)
        return bool(others)

    def _try(self, sequence: Sequence, opening: SequenceOf[Sequence]) -> ReadBlocks | None:
        """Open the request's context, or say which blocks must be read before; neither while all
        that it lacks is on its way from the disk, or there is no room for it yet. `opening` are
        those that are looked at, this one among them."""
        plan = self.plan(sequence.request)
        self.hold(sequence, plan)
        self.stalled = False
        if missing := plan.missing():
            keys = plan.reading.keys
            lacked = self._missing[sequence] = [keys[index] for index in missing]
            # For all of them at once: each that asked for its own alone would have the disk drop
            # what it has fetched for the others, and none would ever be opened.
            wanted = chain.from_iterable(self._missing.get(one, ()) for one in opening)
            ready = frozenset(self._store.fetch(lacked, wanted))
            self.stalled = not ready
            found = [index for index in missing if keys[index] in ready]
            group = plan.reading.fitting(found, self._scheduler.group_tokens)
            return ReadBlocks(plan.reading, group, sequence) if group else None
        if self._has_room(sequence, plan):
            self._fill(sequence, plan)
            self._scheduler.begin_filling(sequence)
            sequence.leave_queue()
        return None

    def _has_room(self, sequence: Sequence, plan: ContextPlan) -> bool:
        """Whether the context can be opened now. Raises OutOfMemory for one that gains nothing by
        waiting, since no other request is under way."""
        seen, room = demand(sequence, plan)
        others = self._scheduler.answering
        if others and self._runner.full_for(seen, room):
            return False
        lacking = self._lacking(seen, room)
        if lacking is not None and not others:
            raise lacking
        return lacking is None

    def _lacking(self, seen: int, room: int) -> OutOfMemory | None:
        growing = (
            one.room_left
            for one in self._scheduler.sequences()
            if one.context is not None and not isinstance(one.context, PagedContext)
        )
        promised = self._memory.growth(sum(growing))
        return self._memory.lacking(self._memory.needed(seen, room), promised)

    def _hold(self, sequence: Sequence, keys: Iterable[bytes]) -> None:
        held = self._held.setdefault(sequence, set())
        for key in keys:
            if key not in held and self._store.contains(key):
                self._store.hold(key)
                held.add(key)

    def _end(self, sequence: Sequence, error: str) -> None:
        sequence.fail(error)
        self._scheduler.sweep()

    def _unhold(self, sequence: Sequence) -> None:
        for key in self._held.pop(sequence):
            self._store.unhold(key)


def _is_over(sequence: Sequence) -> bool:
    """Whether it waits for no block any more."""
    return sequence.finished or sequence.context is not None
