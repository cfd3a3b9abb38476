"""The books of the disk tier: which files there are, which block is in which, what may go first.

It reads and writes no file. Not thread-safe: the tier's lock is held by whoever calls it.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field

from kvstore.errors import IntegrityError
from kvstore.tiers.document_file import DocumentFile


@dataclass(slots=True, eq=False)
class Entry:
    """A file on the shelf, or one that a document of this process may get.

    `created`: it is there and counts against the budget. `wanted`: blocks may be added. `gone`: it
    was forgotten; who still holds it must not use it. `queued`: blocks on their way into it.
    `struck`: blocks that are damaged, whether the manifest says so yet or not.
    """

    file: DocumentFile
    created: bool = False
    wanted: bool = False
    gone: bool = False
    queued: set[int] = field(default_factory=set)
    struck: set[int] = field(default_factory=set)
    touched: float = 0.0

    @property
    def size(self) -> int:
        """Bytes that count against the budget."""
        return self.file.size if self.created else 0


Place = tuple[Entry, int]
"""A block's place: the file and the block's index in it."""


class Shelf:
    """Files by name, least recently used first, and the blocks in them by content key."""

    def __init__(self) -> None:
        self.entries: OrderedDict[str, Entry] = OrderedDict()
        self._places: dict[bytes, tuple[Place, ...]] = {}
        self._lacking: dict[bytes, tuple[Place, ...]] = {}

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.entries.values())

    def put(self, entry: Entry) -> None:
        """A file that was found; it becomes the most recently used."""
        self.entries[entry.file.identity.name] = entry
        for index in entry.file.present:
            self.landed(entry, index)

    def want(self, entry: Entry) -> None:
        """Blocks may be added to the file, which becomes the most recently used."""
        self.entries[entry.file.identity.name] = entry
        self.entries.move_to_end(entry.file.identity.name)
        if not entry.wanted:
            entry.wanted = True
            for index, (key, _, _) in enumerate(entry.file.identity.blocks):
                if index not in entry.file.present or index in entry.struck:
                    self._lacking[key] = (*self._lacking.get(key, ()), (entry, index))

    def used(self, entry: Entry) -> None:
        """The file becomes the most recently used."""
        self.entries.move_to_end(entry.file.identity.name)

    def places(self, key: bytes) -> tuple[Place, ...]:
        """Where the block is."""
        return self._places.get(key, ())

    def lacking(self, key: bytes) -> tuple[Place, ...]:
        """Where the block belongs and neither is nor is on its way to."""
        return tuple((e, i) for e, i in self._lacking.get(key, ()) if i not in e.queued)

    def landed(self, entry: Entry, index: int) -> None:
        """The block is in the file."""
        key = entry.file.identity.blocks[index][0]
        entry.queued.discard(index)
        entry.struck.discard(index)
        _take(self._lacking, key, (entry, index))
        if (entry, index) not in self.places(key):
            self._places[key] = (*self.places(key), (entry, index))

    def struck(self, entry: Entry, index: int) -> None:
        """The block turned out to be damaged."""
        key = entry.file.identity.blocks[index][0]
        if (entry, index) in self.places(key):
            entry.struck.add(index)
            _take(self._places, key, (entry, index))
            if entry.wanted:
                self._lacking[key] = (*self._lacking.get(key, ()), (entry, index))

    def drop(self, entry: Entry) -> None:
        """The file is forgotten."""
        entry.gone = True
        entry.wanted = False
        entry.queued.clear()
        if self.entries.get(entry.file.identity.name) is entry:
            del self.entries[entry.file.identity.name]
        for index, (key, _, _) in enumerate(entry.file.identity.blocks):
            _take(self._places, key, (entry, index))
            _take(self._lacking, key, (entry, index))

    def victims(self, room: int, keep: Entry) -> list[Entry]:
        """The files to drop, least recently used first, until all others and `keep` fit in `room`
        bytes. Empty when they do, or when `keep` alone does not."""
        size = self.size - keep.size + keep.file.size
        if keep.file.size > room:
            return []
        chosen = []
        for entry in self.entries.values():
            if size <= room:
                break
            if entry is not keep and entry.created:
                chosen.append(entry)
                size -= entry.size
        return chosen

    def check_integrity(self) -> None:
        """Raise IntegrityError unless files and blocks agree."""
        found: Counter[tuple[bytes, int]] = Counter()
        for books in (self._places, self._lacking):
            for key, places in books.items():
                if not places:
                    raise IntegrityError("a block without places is kept in the books")
                for entry, index in places:
                    if self.entries.get(entry.file.identity.name) is not entry:
                        raise IntegrityError("a block is noted in a file that is not on the shelf")
                    if entry.file.identity.blocks[index][0] != key:
                        raise IntegrityError("a block is noted under another's key")
                    found[key, id(entry)] += 1
        if any(count > 1 for count in found.values()):
            raise IntegrityError("a block is noted twice, or both as there and as lacking")
        for entry in self.entries.values():
            known = sum((key, id(entry)) in found for key, _, _ in entry.file.identity.blocks)
            if entry.wanted and known != len(entry.file.identity.blocks):
                raise IntegrityError("a block of a document is noted nowhere")


def _take(books: dict[bytes, tuple[Place, ...]], key: bytes, place: Place) -> None:
    left = tuple(one for one in books.get(key, ()) if one != place)
    if left:
        books[key] = left
    else:
        books.pop(key, None)
