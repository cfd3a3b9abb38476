"""Which blocks go first when the pool needs room: whole documents before holes are torn.

The document that was used least recently gives its blocks first, its own least recently used
first, and no other document loses one before its last. So at most one document has holes, wherever
questions asked for single blocks of many. No more than is needed goes: a document with holes still
answers from the blocks that it has. A block that several documents share goes with the one among
them that was used last; a block of no document goes by itself. A document is used when one of its
blocks is, or while it is being read.

Knows keys and names, no pages. Not thread-safe: the engine's thread owns it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from kvstore.errors import IntegrityError

Owner = str | bytes
"""A document's name, or the key of a block that stands in none."""


class Recency:
    """Documents, the blocks that they are made of, and when those in the pool were used."""

    def __init__(self) -> None:
        self._documents: dict[str, frozenset[bytes]] = {}
        self._owners: dict[bytes, tuple[str, ...]] = {}
        self._here: set[bytes] = set()
        # Owners with blocks in the pool and these blocks, both least recently used first.
        self._present: OrderedDict[Owner, OrderedDict[bytes, None]] = OrderedDict()

    @property
    def documents(self) -> tuple[str, ...]:
        """Names of all documents."""
        return tuple(self._documents)

    def blocks(self, document: str) -> frozenset[bytes]:
        """What the document is made of; nothing for one that is not known."""
        return self._documents.get(document, frozenset())

    def documents_of(self, key: bytes) -> tuple[str, ...]:
        """The documents that the block stands in."""
        return self._owners.get(key, ())

    def enrol(self, document: str, keys: frozenset[bytes]) -> None:
        """The document is made of these blocks from now on, whether they are there or not."""
        before = self.blocks(document)
        self._documents[document] = keys
        for key in before - keys:
            self._leave(key, document)
        for key in keys - before:
            self._join(key, document)

    def forget(self, document: str) -> tuple[bytes, ...]:
        """The document is no more. Returns its blocks that stand in no other."""
        keys = self._documents.pop(document, frozenset())
        for key in keys:
            self._leave(key, document)
        return tuple(key for key in keys if key not in self._owners)

    def use(self, key: bytes) -> None:
        """The block, in the pool now if it was not, is the most recently used."""
        self._here.add(key)
        for owner in self._owners_of(key):
            self._present.setdefault(owner, OrderedDict())[key] = None
            self._present[owner].move_to_end(key)
            self._present.move_to_end(owner)

    def use_document(self, document: str) -> None:
        """The document is the most recently used, with the blocks of it that are in the pool."""
        if document in self._present:
            self._present.move_to_end(document)

    def remove(self, key: bytes) -> None:
        """The block is in the pool no more."""
        self._here.discard(key)
        for owner in self._owners_of(key):
            self._take(owner, key)

    def least(self) -> Iterator[bytes]:
        """The blocks in the pool, in the order in which they are to go. Nothing may change
        meanwhile."""
        passed: set[Owner] = set()
        for owner, present in self._present.items():
            passed.add(owner)
            yield from (key for key in present if passed.issuperset(self._owners_of(key)))

    def check_integrity(self, keys: frozenset[bytes]) -> None:
        """Raise IntegrityError unless these are the blocks in the pool and the books agree."""
        if self._here != keys:
            raise IntegrityError("other blocks are in the pool than their order knows")
        stands = {(key, name) for name, made in self._documents.items() for key in made}
        if stands != {(key, name) for key, names in self._owners.items() for name in names}:
            raise IntegrityError("the owners of blocks don't agree with the documents")
        present = {(key, owner) for owner, made in self._present.items() for key in made}
        if present != {(key, owner) for key in keys for owner in self._owners_of(key)}:
            raise IntegrityError("a block is missing in the order of its documents, or is too much")
        if not all(self._present.values()):
            raise IntegrityError("a document without blocks in the pool waits to be dropped")

    def _owners_of(self, key: bytes) -> tuple[Owner, ...]:
        return self._owners.get(key) or (key,)

    def _join(self, key: bytes, document: str) -> None:
        if key in self._here:
            if key not in self._owners:
                self._take(key, key)
            self._present.setdefault(document, OrderedDict())[key] = None
        self._owners[key] = (*self._owners.get(key, ()), document)

    def _leave(self, key: bytes, document: str) -> None:
        left = tuple(name for name in self._owners[key] if name != document)
        if left:
            self._owners[key] = left
        else:
            del self._owners[key]
        if key in self._here:
            self._take(document, key)
            if not left:
                self._present[key] = OrderedDict({key: None})

    def _take(self, owner: Owner, key: bytes) -> None:
        present = self._present[owner]
        del present[key]
        if not present:
            del self._present[owner]
