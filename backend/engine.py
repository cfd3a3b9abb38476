"""The engine: documents and requests in, token events out, from a thread of its own.

The thread's loop is `schedule`, `run`, `commit`. Everything that touches the model or the KV store
happens there; callers put commands into a queue and read events and progress. Knows no text of
documents and no HTTP.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Collection
from collections.abc import Sequence as SequenceOf

from backend.admission import Places, check_pages, check_request
from backend.batch import Batch
from backend.block_reader import BlockReader
from backend.config import ModelConfig
from backend.context_plan import ContextPlan
from backend.disk import open_disk
from backend.engine_config import EngineConfig
from backend.errors import BackendError, EngineClosed, RequestTooLarge, UnknownDocument
from backend.host_memory import attach_memory
from backend.mailbox import Mailbox
from backend.opener import Opener
from backend.opening import demand, open_context
from backend.parts import EngineParts, load_parts
from backend.pulse import Pulse
from backend.reading import DocumentReading
from backend.runner import Runner
from backend.scheduler import Scheduler
from backend.scoring import score_continuation
from backend.sequence import Sequence
from backend.step_clock import StepClock
from backend.step_times import RequestSteps, StepTimes
from backend.step_watch import StepWatch
from backend.steps import Steps
from backend.stream import TokenStream
from backend.ticket import ReadTicket
from backend.types import (
    DocumentTokens,
    EngineCounters,
    ReadProgress,
    Request,
    SamplingParams,
)
from backend.working_memory import WorkingMemory
from kvstore.errors import PinRefused, PoolExhausted
from kvstore.tiers.folder import remove_document
from kvstore.tiers.types import Stamp

_log = logging.getLogger(__name__)


class Engine:
    """One model on one device. Safe to call from any thread."""

    attends_pages = True
    """A request's `evidence` is attended to as KV pages."""

    def __init__(self, config: EngineConfig, parts: EngineParts) -> None:
        """Use `Engine.open`."""
        self.settings = config
        self.config: ModelConfig = parts.model.config
        self.tokenizer = parts.tokenizer
        self.fingerprint = parts.fingerprint
        self._store = parts.store
        self._kv_format = config.kv_name(parts.store.pool.format.name)
        self._runner = Runner(
            parts.model, parts.store.pool, parts.arena, device_draws=config.device_draws
        )
        self._clock = StepClock(parts.model.device, config.step_every)
        self._scheduler = Scheduler(
            config.prefill_chunk,
            config.resolved_read_tokens(),
            self._store.room_for,
            first_come=config.first_come,
        )
        self._documents: dict[str, DocumentReading] = {}
        # The thread is told in the same order, or it would read and keep what was just forgotten.
        self._registering = threading.Lock()
        self._mail = Mailbox(lambda: self.alive)
        self._live: dict[str, Sequence] = {}
        self._places = Places(config.max_waiting)
        self._memory = WorkingMemory(
            self.config,
            parts.store.pool.shape,
            parts.model.compute_dtype,
            parts.model.device,
            config.prefill_chunk,
            paged_tokens=0 if parts.arena is None else parts.arena.longest,
        )
        self._opener = Opener(
            self._scheduler,
            self._runner,
            self._store,
            self._memory,
            self._documents,
            self._fill_context,
        )
        reader = BlockReader(parts.store, self._runner)
        self._steps = Steps(reader, self._runner, self._opener.make_way, self._opener.holding)
        self._watch = StepWatch(self._scheduler)
        if parts.model.device.type == "cpu":
            self._runner.look = self._watch.look
        self._pulse = Pulse()
        self._thread = threading.current_thread()
        attach_memory(config, self._store)
        stamp = Stamp(self.fingerprint, self._kv_format, self.kv_page_bytes)
        if (disk := open_disk(config, stamp, self._mail.wake)) is not None:
            self._store.attach(disk)

    @classmethod
    def open(
        cls, config: EngineConfig, load: Callable[[EngineConfig], EngineParts] = load_parts
    ) -> Engine:
        """Load the model and start the engine's thread. On a GPU this takes some seconds more: what
        the first requests would wait for is done before.

        Raises CheckpointError for a model that can't be used and BackendError for a device or
        budget that can't.
        """
        opened: queue.SimpleQueue[Engine | BaseException] = queue.SimpleQueue()

        def run() -> None:
            try:
                engine = cls(config, load(config))
                engine._runner.warm_up(config.block_tokens)
            except BaseException as error:
                opened.put(error)
                return
            opened.put(engine)
            engine._loop()

        # The model is loaded in the thread that runs it: with a second thread that computes, OpenMP
        # has more workers than cores and lets them sleep between any two operations, which was
        # measured to double the time of a decoding step.
        thread = threading.Thread(target=run, name="engine", daemon=True)
        thread.start()
        engine = opened.get()
        if isinstance(engine, BaseException):
            raise engine
        engine._thread = thread
        return engine

    @property
    def block_tokens(self) -> int:
        """Tokens of one block of reading."""
        return self.settings.block_tokens

    @property
    def alive(self) -> bool:
        """Whether the engine's thread runs."""
        return self._thread.is_alive()

    @property
    def problem(self) -> str:
        """Why the engine answers no more; empty while it is alive."""
        return "" if self.alive else "The engine's thread has ended; restart the server."

    @property
    def step_seconds(self) -> float:
        """How long the engine's thread has been at its present step; 0 while there is nothing to
        do. A step takes at most some seconds on a slow CPU: much more is a thread that hangs."""
        return self._pulse.step_seconds

    @property
    def counters(self) -> EngineCounters:
        """Block look-ups, evictions and tokens read since the engine opened; pages in use now."""
        store, pool = self._store.counters, self._store.pool
        return EngineCounters(
            hits=store.hits,
            misses=store.misses,
            evicted=store.evicted,
            read_tokens=self._steps.read_tokens,
            pages_used=pool.total - pool.free,
            pages_total=pool.total,
            disk=None if self._store.disk is None else self._store.disk.counters,
            memory=None if self._store.memory is None else self._store.memory.counters,
            dropped=store.dropped,
            lost=store.lost,
        )

    @property
    def step_times(self) -> StepTimes:
        """How long the engine's steps took since it opened."""
        return self._clock.times()

    def steps_of(self, request_id: str) -> RequestSteps | None:
        """What happened to a request, and when; None once it is forgotten."""
        return self._clock.of(request_id)

    @property
    def kv_page_bytes(self) -> int:
        """Bytes of one KV page."""
        return self._store.pool.page_bytes

    @property
    def context_bytes(self) -> int:
        """Bytes of the pages that are kept for requests under way."""
        return self._runner.context_bytes

    def split_blocks(self, token_count: int) -> tuple[tuple[int, int], ...]:
        """Half-open block ranges that cover `token_count` tokens."""
        size = self.block_tokens
        return tuple((i, min(i + size, token_count)) for i in range(0, token_count, size))

    def read(
        self, document: DocumentTokens, *, first_blocks: SequenceOf[int] = (), lazy: bool = False
    ) -> ReadTicket:
        """Make a document known and read it in the background; returns at once.

        `first_blocks` are read before the rest. With `lazy` only the blocks that questions need
        are read. Raises RequestTooLarge when the document can't fit in the KV pool.
        """
        reading = DocumentReading(document, self.fingerprint, self._kv_format, self._store)
        if not lazy:
            total = self._store.pool.total
            if reading.pages > total:
                raise RequestTooLarge(
                    f"The document needs {reading.pages} KV pages and the pool has {total}: raise "
                    "the KV budget (FINEPRINT_KV_BUDGET_MB) or split the document"
                )
            reading.want(first_blocks)

        def begin() -> None:
            try:
                self._store.enrol(document.key, reading.keys, reading.layout())
            except Exception as error:
                reading.error = str(error) or type(error).__name__
                reading.notify()
                raise
            if not lazy:
                self._scheduler.add_reading(reading)

        with self._registering:
            if lazy and (known := self._documents.get(document.key)) is not None:
                return ReadTicket(known, self._mail.wake)
            self._documents[document.key] = reading
            self._mail.send(begin)
        return ReadTicket(reading, self._mail.wake)

    def progress(self, key: str) -> ReadProgress | None:
        """Reading state of a document, None when the engine doesn't know it."""
        reading = self._documents.get(key)
        return None if reading is None else reading.progress()

    def forget(self, key: str) -> None:
        """Drop a document and its KV, but for blocks that another known document shares. It can be
        read again at once."""

        def drop() -> None:
            readings = self._scheduler.drop_readings(key)
            for reading in readings if known is None else [*readings, known]:
                reading.cancelled = True
                reading.notify()
            self._store.forget_document(key)
            if self._store.disk is None and self.settings.disk_folder is not None:
                remove_document(self.settings.disk_folder, key)

        with self._registering:
            known = self._documents.pop(key, None)
            if known is not None:
                # Now, so that a step that reads it is left and not waited for.
                known.cancelled = True
            self._mail.send(drop)

    def pin(self, key: str, ttl_s: float) -> None:
        """Have the document's KV make room after that of all others, for `ttl_s` seconds from now
        (see `KVStore.pin`). Nothing is read by it. Raises UnknownDocument, and RequestTooLarge when
        it can't be pinned."""
        if key not in self._documents:
            raise UnknownDocument(f"No document {key} was given to the engine")
        try:
            self._mail.call(lambda: self._store.pin(key, ttl_s))
        except PinRefused as error:
            raise RequestTooLarge(str(error)) from error

    def unpin(self, key: str) -> None:
        """End the document's pin, if there is one."""
        self._mail.call(lambda: self._store.unpin(key))

    def keep_documents(self, keys: Collection[str]) -> None:
        """Remove the KV files of documents that are neither among these nor known to the engine."""
        if self._store.disk is not None:
            self._store.disk.keep(frozenset(keys))

    def generate(self, request: Request) -> TokenStream:
        """Run a request; yields its events. Closing or dropping the stream cancels it.

        Raises InvalidSampling, UnknownDocument, RequestTooLarge, EngineBusy or EngineClosed before
        the first event; what goes wrong later is the last event's `error`.
        """
        sequence = self._admit(request)
        sequence.place = self._places.take(request.owner)
        self._mail.send(lambda: self._scheduler.add(sequence))
        self._live[request.request_id] = sequence
        return TokenStream(sequence, lambda: self.alive, self._leave)

    def cancel(self, request_id: str) -> None:
        """End a request soon; harmless when it is finished or unknown."""
        sequence = self._live.get(request_id)
        if sequence is not None:
            sequence.cancelled = True
            self._mail.wake()

    def score(
        self,
        prompt_ids: SequenceOf[int],
        continuation_ids: SequenceOf[int],
        *,
        document_key: str | None = None,
        evidence: SequenceOf[tuple[int, int]] = (),
        sink_len: int = 0,
    ) -> tuple[float, ...]:
        """Log-probabilities of the continuation's tokens after the prompt (and the evidence)."""
        request = Request("score", tuple(prompt_ids), document_key=document_key,
                          evidence=tuple(evidence), sink_len=sink_len,
                          sampling=SamplingParams(max_tokens=1))  # fmt: skip
        sequence = self._admit(request, len(continuation_ids))
        return self._mail.call(lambda: self._score(sequence, tuple(continuation_ids)))

    def close(self) -> None:
        """Stop the thread; requests under way end with an error."""
        if self._mail.close():
            self._thread.join()

    def _admit(self, request: Request, extra: int = 0) -> Sequence:
        if not self._mail.open:
            raise EngineClosed("The engine is closed; restart the server")
        check_request(request, extra, self.config.max_positions)
        if request.document_key is not None and request.document_key not in self._documents:
            raise UnknownDocument(f"No document {request.document_key} was given to the engine")
        sequence = Sequence(request, self.tokenizer, self.config.eos_ids)
        plan = self._opener.plan(request)
        check_pages(plan, self._store.pool.total)
        seen, room = demand(sequence, plan)
        self._memory.require_ever(seen, room + extra)
        return sequence

    def _leave(self, sequence: Sequence) -> None:
        """Nobody waits for this request any more."""
        if self._live.get(sequence.request.request_id) is sequence:
            del self._live[sequence.request.request_id]
        if not sequence.finished:
            sequence.cancelled = True
            self._mail.wake()

    def _loop(self) -> None:
        try:
            while self._take_commands():
                self._drop_cancelled()
                batch = self._schedule()
                if batch is not None:
                    with self._watch.during(batch), self._clock.step(batch):
                        self._steps.run(batch)
                    self._opener.keep(batch)
                self._scheduler.sweep()
                self._opener.let_go()
                self._store.spill()
        finally:
            for sequence in self._scheduler.sequences():
                sequence.fail("The engine was closed before the answer was done")
            for reading in [*self._documents.values(), *self._scheduler.readings()]:
                reading.error = reading.error or "The engine was closed before it was read"
                reading.notify()
            if self._store.disk is not None:
                self._store.disk.close()

    def _take_commands(self) -> bool:
        """Run what was asked for, waiting when there is nothing else to do. False: close."""
        while self._scheduler.idle or self._opener.stalled or not self._mail.empty:
            while self._mail.empty and self._store.spill():
                pass
            self._pulse.rest()
            command = self._mail.take()
            self._pulse.beat()
            self._opener.stalled = False
            if command is None:
                return False
            try:
                command()
            except Exception:
                # Whoever waits for a result has the error; the others go on.
                _log.exception("a command of the engine failed")
        self._pulse.beat()
        return True

    def _drop_cancelled(self) -> None:
        for sequence in self._scheduler.sequences():
            if sequence.cancelled:
                sequence.cancel()
        self._scheduler.sweep()

    def _schedule(self) -> Batch | None:
        wanted = self._opener.next_blocks()
        if self._opener.stalled and not self._scheduler.answering:
            # A block comes from the disk sooner than another is read from its text.
            return None
        self._opener.stalled = False
        return self._scheduler.schedule(wanted)

    def _fill_context(self, sequence: Sequence, plan: ContextPlan, extra: int = 0) -> None:
        guessed = self.settings.guessed_tokens
        with self._clock.gather(sequence):
            open_context(sequence, plan, self._runner, self._store, guessed=guessed, extra=extra)

    def _score(self, sequence: Sequence, continuation: tuple[int, ...]) -> tuple[float, ...]:
        plan = self._opener.plan(sequence.request)
        try:
            self._opener.hold(sequence, plan)
            while missing := plan.missing():
                self._pulse.beat()
                group = plan.reading.fitting(missing, self._scheduler.group_tokens)
                try:
                    self._steps.read(plan.reading, group, sequence)
                except PoolExhausted:
                    if not self._opener.make_way(sequence):
                        raise
                self._opener.hold(sequence, plan)
            self._fill_context(sequence, plan, len(continuation))
        finally:
            sequence.finished = sequence.context is None
            self._opener.let_go()
        if sequence.context is None:
            raise BackendError("scoring lost its context")
        prompt = sequence.request.prompt_ids[sequence.filled :]
        chunk = self.settings.prefill_chunk
        try:
            return score_continuation(self._runner, sequence.context, prompt, continuation, chunk)
        finally:
            sequence.context.close()
