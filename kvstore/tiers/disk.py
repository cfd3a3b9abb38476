"""The disk tier: writes blocks behind the engine's back, fetches those that a question needs.

Called from the engine's thread, which it never keeps waiting for the disk except in `take`. A
writer and a reader thread do the work; they touch bytes only, since a second thread that computes
with torch would slow the first. Knows no tensors.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kvstore.errors import BadKVFile, IntegrityError
from kvstore.tiers.document_file import DocumentFile
from kvstore.tiers.folder import FolderLock, found_files
from kvstore.tiers.shelf import Entry, Place, Shelf
from kvstore.tiers.types import DocumentLayout, Stamp
from kvstore.types import DiskCounters

_log = logging.getLogger(__name__)

QUEUE_BYTES = 256 << 20
"""Copies of pages that wait for the disk, at most (one block may always wait)."""
AHEAD_BYTES = 256 << 20
"""Pages that were fetched and wait for the engine, at most (one block may always wait)."""
BATCH = 16
"""Blocks of one file that are written between two manifests, at most."""
TOUCH_S = 60.0
"""How often the use of a file is noted on the disk."""

_WHOLE_FILE = frozenset({"manifest", "version", "missing", "truncated", "foreign", "tokens"})
"""Reasons to refuse a file as a whole, not one block."""


@dataclass(frozen=True, slots=True)
class _Job:
    """Work of the writer. `data` None of a `save`: the block is copied from another file."""

    kind: Literal["save", "strike", "remove", "touch"]
    entry: Entry
    index: int = 0
    data: memoryview | None = None

    @property
    def size(self) -> int:
        return 0 if self.data is None else len(self.data)


class DiskTier:
    """Blocks in the files of one folder, at most `budget` bytes. Open it once per folder.

    A document whose layout was given (`enrol`) gets its blocks written; any block whose key is
    there can be fetched, whichever document of its owner it came with. `wake` is called, from
    another thread, when a fetched block has come or there is room for more to write, or a block to
    be saved from memory after all.
    """

    def __init__(
        self, folder: Path, stamp: Stamp, budget: int, wake: Callable[[], None] = lambda: None
    ) -> None:
        """Raises KVFolderBusy, OSError."""
        self.folder = folder
        self.stamp = stamp
        self.budget = budget
        self._wake = wake
        self._lock = FolderLock(folder)
        self._shelf = Shelf()
        self._changed = threading.Condition()
        self._jobs: deque[_Job] = deque()
        self._queued_bytes = 0
        self._busy = False
        self._short_of_room = False
        self._uncopied: list[bytes] = []
        self._asked: deque[bytes] = deque()
        self._fetching: bytes | None = None
        self._arrived: OrderedDict[bytes, tuple[bytearray, Sequence[int], Place]] = OrderedDict()
        self._hits = self._misses = self._written = self._read = 0
        self._refused: Counter[str] = Counter()
        self._unsaved: Counter[str] = Counter()
        self._closing = False
        self._find()
        self._threads = [
            threading.Thread(target=target, name=f"kv-disk-{name}", daemon=True)
            for name, target in (("writer", self._write), ("reader", self._fetch))
        ]
        for thread in self._threads:
            thread.start()

    def _find(self) -> None:
        files, refused = found_files(self.folder)
        self._refused.update(error.reason for error in refused)
        for file in files:
            # Those of another stamp are kept for the engine that made them, as long as there is
            # room, and never served: their keys are not put in the books.
            entry = Entry(file, created=True)
            if file.identity.stamp == self.stamp:
                self._shelf.put(entry)
            else:
                self._shelf.entries[file.identity.name] = entry
        excess = self._shelf.size - self.budget
        for entry in list(self._shelf.entries.values()):
            if excess <= 0:
                break
            excess -= entry.size
            self._shelf.drop(entry)
            entry.file.remove()

    @property
    def counters(self) -> DiskCounters:
        """Since the tier was opened."""
        with self._changed:
            return DiskCounters(
                hits=self._hits,
                misses=self._misses,
                bytes_written=self._written,
                bytes_read=self._read,
                bytes_held=self._shelf.size,
                refused=dict(self._refused),
                unsaved=dict(self._unsaved),
            )

    def contains(self, key: bytes) -> bool:
        """Whether the block is on the disk. Safe from any thread."""
        return bool(self._shelf.places(key))

    def enrol(self, layout: DocumentLayout) -> None:
        """Blocks of this document are to be kept from now on. Blocks of it that stand in another
        file already are copied in the background."""
        file = DocumentFile.planned(self.folder, self.stamp, layout)
        with self._changed:
            entry = self._shelf.entries.get(file.identity.name)
            if entry is None:
                entry = Entry(file)
            else:
                entry.file.know(file)
            self._shelf.want(entry)
            self._note_use(entry)
            for key, _, _ in file.identity.blocks:
                if self._shelf.places(key):
                    for place in self._shelf.lacking(key):
                        self._push(_Job("save", *place))

    def used(self, key: bytes) -> None:
        """The block served a question from memory: its documents are not the ones to drop first."""
        with self._changed:
            for entry, _ in self._shelf.places(key):
                self._note_use(entry)

    def lacks(self, key: bytes) -> bool:
        """Whether the block belongs to an enrolled document and is neither written nor on its
        way."""
        with self._changed:
            return bool(self._shelf.lacking(key))

    def room(self, size: int) -> bool:
        """Whether a copy of `size` bytes may be queued now. If not, `wake` is called later."""
        with self._changed:
            fits = not self._queued_bytes or self._queued_bytes + size <= QUEUE_BYTES
            self._short_of_room = self._short_of_room or not fits
            return fits

    def save(self, key: bytes, data: memoryview) -> None:
        """Write the block wherever it is lacking; `data` is the tier's from now on."""
        with self._changed:
            for place in self._shelf.lacking(key):
                self._push(_Job("save", *place, data))

    def uncopied(self) -> list[bytes]:
        """Blocks that could not be copied from another file, since the last call: they lack a place
        again and can be saved from memory. `wake` tells of them."""
        with self._changed:
            found, self._uncopied = self._uncopied, []
            return found

    def missed(self, reason: str) -> None:
        """Count a block that could not be saved."""
        with self._changed:
            self._unsaved[reason] += 1

    def request(self, keys: Iterable[bytes]) -> None:
        """Fetch these, in this order, and nothing else: what was asked for before and is not among
        them is wanted no more. Returns at once."""
        wanted = {key: None for key in keys if self.contains(key)}
        with self._changed:
            for key in [key for key in self._arrived if key not in wanted]:
                del self._arrived[key]
            self._asked = deque(
                key for key in wanted if key not in self._arrived and key != self._fetching
            )
            self._changed.notify_all()

    def arrived(self, key: bytes) -> bool:
        """Whether `take` will not have to wait for the block."""
        return key in self._arrived

    def take(self, key: bytes, token_ids: Sequence[int]) -> bytearray | None:
        """The block's pages, waiting for them if need be. None when it is not there, is damaged, or
        has other tokens: then it must be read from its text."""
        while True:
            with self._changed:
                if not self._shelf.places(key):
                    self._misses += 1
                    return None
                if key not in self._arrived:
                    if key != self._fetching:
                        if key in self._asked:
                            self._asked.remove(key)
                        self._asked.appendleft(key)
                        if not self._may_fetch():
                            # What nobody has taken yet must not keep this one from coming.
                            self._arrived.clear()
                        self._changed.notify_all()
                    self._changed.wait(1.0)
                    continue
                pages, tokens, place = self._arrived.pop(key)
                self._changed.notify_all()
                if list(tokens) == list(token_ids):
                    self._hits += 1
                    return pages
                self._refuse(place, BadKVFile(place[0].file.data, "tokens", "they differ"))

    def forget(self, document: str) -> None:
        """Drop the document and remove its files, in the background."""
        with self._changed:
            for entry in [*self._shelf.entries.values()]:
                if entry.file.identity.document == document:
                    self._drop(entry)

    def keep(self, documents: Collection[str]) -> int:
        """Drop all files of documents that are neither among these nor enrolled; how many."""
        with self._changed:
            orphans = [
                entry
                for entry in self._shelf.entries.values()
                if not entry.wanted and entry.file.identity.document not in documents
            ]
            for entry in orphans:
                self._drop(entry)
        return len(orphans)

    def settle(self, timeout: float = 60.0) -> bool:
        """Wait until what was queued is written. False: it took longer."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._jobs and not self._busy, timeout)

    def close(self) -> None:
        """Write what is queued and stop."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._lock.release()

    def check_integrity(self) -> None:
        """Raise IntegrityError unless the books agree with themselves and, when nothing is under
        way, with the budget."""
        with self._changed:
            self._shelf.check_integrity()
            queued = sum(job.size for job in self._jobs)
            if queued > self._queued_bytes or self._queued_bytes < 0:
                raise IntegrityError("the bytes that wait for the disk are miscounted")
            if self._shelf.size > self.budget:
                raise IntegrityError("the files are larger than the budget")

    def _push(self, job: _Job) -> None:
        """With the lock held."""
        if job.kind == "save":
            job.entry.queued.add(job.index)
        self._queued_bytes += job.size
        self._jobs.append(job)
        self._changed.notify_all()

    def _drop(self, entry: Entry) -> None:
        """With the lock held."""
        self._shelf.drop(entry)
        if entry.created or self._busy:
            self._push(_Job("remove", entry))

    def _note_use(self, entry: Entry) -> None:
        """With the lock held."""
        self._shelf.used(entry)
        if entry.created and time.monotonic() - entry.touched > TOUCH_S:
            entry.touched = time.monotonic()
            self._push(_Job("touch", entry))

    def _refuse(self, place: Place, error: BadKVFile) -> None:
        """With the lock held: never use this again."""
        entry, index = place
        if entry.gone:
            return
        _log.warning("%s; the text is read again", error)
        self._refused[error.reason] += 1
        if error.reason in _WHOLE_FILE:
            wanted = entry.wanted
            self._drop(entry)
            if wanted:
                self._shelf.want(Entry(entry.file.anew()))
        else:
            self._shelf.struck(entry, index)
            self._push(_Job("strike", entry, index))

    # -- the reader's thread

    def _fetch(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._may_fetch())
                if self._closing:
                    return
                key = self._fetching = self._asked.popleft()
                places = self._shelf.places(key)
            got = self._read_ahead(key, places[0]) if places else None
            with self._changed:
                self._fetching = None
                if got is not None:
                    self._arrived[key] = got
                self._changed.notify_all()
            self._wake()

    def _may_fetch(self) -> bool:
        held = sum(len(pages) for pages, _, _ in self._arrived.values())
        return bool(self._asked) and held < AHEAD_BYTES

    def _read_ahead(
        self, key: bytes, place: Place
    ) -> tuple[bytearray, Sequence[int], Place] | None:
        """None as well when there is no memory for it: the block is then read by the engine, which
        waits for the disk or reads the text. This thread must outlive the squeeze."""
        try:
            return self._read_block(key, place)
        except MemoryError:
            _log.error("no memory to read KV pages from %s ahead", place[0].file.data)
            return None

    def _read_block(
        self, key: bytes, place: Place
    ) -> tuple[bytearray, Sequence[int], Place] | None:
        entry, index = place
        try:
            pages, tokens = entry.file.read(index)
        except BadKVFile as error:
            with self._changed:
                if place in self._shelf.places(key):
                    self._refuse(place, error)
            return None
        with self._changed:
            if entry.gone:
                return None
            self._read += len(pages)
            self._note_use(entry)
        return pages, tokens, place

    # -- the writer's thread

    def _write(self) -> None:
        while batch := self._next_batch():
            try:
                self._do(batch)
            except (OSError, MemoryError) as error:
                self._give_up(batch, error)
            with self._changed:
                self._busy = False
                self._queued_bytes -= sum(job.size for job in batch)
                wanted = self._short_of_room or bool(self._uncopied)
                self._short_of_room = False
                self._changed.notify_all()
            if wanted:
                self._wake()

    def _next_batch(self) -> list[_Job]:
        """The next jobs of one kind for one file; none when the tier closes and all is done."""
        with self._changed:
            self._changed.wait_for(lambda: self._closing or self._jobs)
            batch: list[_Job] = []
            while self._jobs and len(batch) < BATCH:
                job = self._jobs[0]
                if batch and (job.kind != batch[0].kind or job.entry is not batch[0].entry):
                    break
                batch.append(self._jobs.popleft())
            self._busy = bool(batch)
            return batch

    def _do(self, batch: list[_Job]) -> None:
        kind, entry = batch[0].kind, batch[0].entry
        if kind == "remove":
            entry.file.remove()
        elif kind == "touch":
            if not entry.gone:
                entry.file.touch()
        elif kind == "strike":
            self._strike(entry, {job.index for job in batch})
        else:
            self._save(entry, batch)

    def _save(self, entry: Entry, batch: list[_Job]) -> None:
        blocks = [(job.index, data) for job in batch if (data := self._data_of(job)) is not None]
        if not blocks or not self._make_room(entry):
            return
        if not entry.created:
            entry.file.create()
            with self._changed:
                entry.created = True
        entry.file.write(blocks)
        with self._changed:
            self._written += sum(len(data) for _, data in blocks)
            if not entry.gone:
                for index, _ in blocks:
                    self._shelf.landed(entry, index)

    def _data_of(self, job: _Job) -> memoryview | None:
        """The bytes to write, from another file if need be."""
        if job.entry.gone:
            return None
        if job.data is not None:
            return job.data
        key = job.entry.file.identity.blocks[job.index][0]
        for place in self._shelf.places(key):
            if (got := self._read_block(key, place)) is not None:
                return memoryview(got[0])
        with self._changed:
            job.entry.queued.discard(job.index)
            self._uncopied.append(key)
        return None

    def _make_room(self, entry: Entry) -> bool:
        """Drop what was used least recently until the file fits. False: it never will."""
        with self._changed:
            if entry.gone:
                return False
            if entry.file.size > self.budget:
                self._unsaved["budget"] += 1
                _log.info("a document of %d bytes of KV is more than the disk's budget of %d: it "
                          "is not kept", entry.file.size, self.budget)  # fmt: skip
                self._shelf.drop(entry)
                return False
            victims = self._shelf.victims(self.budget, entry)
            for victim in victims:
                self._unsaved["budget"] += len(victim.file.present)
                self._shelf.drop(victim)
        for victim in victims:
            victim.file.remove()
        return True

    def _strike(self, entry: Entry, indexes: set[int]) -> None:
        for index in indexes:
            # Not one that was written again since.
            if not entry.gone and entry.file.present.get(index) is not None:
                entry.file.strike(index)

    def _give_up(self, batch: list[_Job], error: OSError | MemoryError) -> None:
        """The disk failed, or memory for it: this file is not trusted, the others go on."""
        entry = batch[0].entry
        _log.error("KV pages can't be kept in %s: %s", self.folder, str(error) or "out of memory")
        with self._changed:
            self._unsaved["error"] += sum(job.kind == "save" for job in batch)
            self._shelf.drop(entry)
        try:
            entry.file.remove()
        except OSError as again:
            _log.error("%s could not be removed: %s", entry.file.data, again)
