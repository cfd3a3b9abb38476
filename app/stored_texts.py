"""Finds a stored document's whole text inside a long prompt.

Documents are known by the hash of their text without blanks and invisible characters, so a prompt
may have other line breaks than the file. A prompt is looked through once, by a rolling hash
(Karp and Rabin, 1987) of the first letters of every document; what looks alike is then compared
whole, by its SHA-256. Knows the database; does not know prompts or the engine.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.exc import NoResultFound

from app.db.models import DocumentRow, VersionRow
from app.db.session import Database
from app.records import text_of

SHORTEST = 2000
"""Visible characters of the shortest document that is looked for: some 500 tokens, about a block.
What is shorter is read again sooner than its pages are fetched."""
HEAD = 64
"""Visible characters at a document's beginning by which places are found."""
_STEP = 1 << 20
"""Characters looked through at a time, with some 40 bytes for each."""
_MOST_PLACES = 64
"""Places where one document's beginning is followed up; contracts may begin with a line of dots."""
_BASE = 0x9E3779B97F4A7C15
_WORD = 1 << 64

Codes = NDArray[np.uint32]
Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class StoredText:
    """Characters `[start, end)` of the prompt are the text of the document."""

    document_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Signature:
    """`head` and `tail` are the hashes of the first and last `HEAD` visible characters of
    `length`."""

    document_id: str
    length: int
    head: int
    tail: int
    digest: bytes


class StoredTexts:
    """The texts of all owners. Thread-safe. A document's text is read from the database once, when
    the first long prompt of its owner comes after it was indexed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._owners: dict[str, _Known] = {}

    def find(self, prompt: str, owner: str) -> StoredText | None:
        """The longest document of this owner whose whole text stands in the prompt, at its first
        place; None for a prompt that holds none."""
        if len(prompt) < SHORTEST:
            return None
        codes, places = _visible(prompt)
        if len(codes) < SHORTEST:
            return None
        able = [one for one in self._signatures(owner) if one.length <= len(codes)]
        found = _longest(codes, able)
        if found is None:
            return None
        signature, at = found
        last = int(places[at + signature.length - 1])
        return StoredText(signature.document_id, int(places[at]), last + 1)

    def _signatures(self, owner: str) -> list[_Signature]:
        query = (
            select(VersionRow.id, DocumentRow.id)
            .join(DocumentRow, DocumentRow.id == VersionRow.document_id)
            .where(DocumentRow.owner == owner, VersionRow.indexed)
            .order_by(DocumentRow.created_at, VersionRow.id)
        )
        with self._lock:
            own = self._owners.setdefault(owner, _Known())
        # Others' prompts don't wait for this owner's texts; two prompts of one owner read them
        # once. The database is left before a text is hashed.
        with own.lock:
            with self._database.read() as session:
                rows = session.execute(query).all()
            stands = {version for version, _ in rows}
            for version in own.signatures.keys() - stands:
                del own.signatures[version]
            for version, document in rows:
                if version in own.signatures:
                    continue
                text = self._text(version)
                if text is not None:
                    own.signatures[version] = _signature(document, text)
            found = [own.signatures.get(version) for version, _ in rows]
        return [one for one in found if one is not None]

    def _text(self, version: int) -> str | None:
        """None for a version that was deleted meanwhile."""
        with self._database.read() as session:
            try:
                return text_of(session, version)
            except NoResultFound:
                return None


class _Known:
    """The signatures of one owner's texts, by version; `lock` is held while they are looked up."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.signatures: dict[int, _Signature | None] = {}


def _signature(document_id: str, text: str) -> _Signature | None:
    """None for a text that is too short to be looked for."""
    codes, _ = _visible(text)
    if len(codes) < SHORTEST:
        return None
    head, tail = (int(_hashes(part)[0]) for part in (codes[:HEAD], codes[-HEAD:]))
    return _Signature(document_id, len(codes), head, tail, _digest(codes))


def _longest(codes: Codes, able: list[_Signature]) -> tuple[_Signature, int] | None:
    """The longest of the texts that stands in `codes`, and where."""
    if not able:
        return None
    heads = np.unique(np.array([one.head for one in able], dtype=np.uint64))
    places: dict[int, list[int]] = {}
    for start in range(0, len(codes) - HEAD + 1, _STEP):
        hashes = _hashes(codes[start : start + _STEP + HEAD - 1])
        near = np.minimum(np.searchsorted(heads, hashes), len(heads) - 1)
        for at in np.flatnonzero(heads[near] == hashes).tolist():
            own = places.setdefault(int(hashes[at]), [])
            if len(own) < _MOST_PLACES:
                own.append(start + at)
    for one in sorted(able, key=lambda one: -one.length):
        for at in places.get(one.head, ()):
            if _stands(one, codes, at):
                return one, at
    return None


def _stands(one: _Signature, codes: Codes, at: int) -> bool:
    text = codes[at : at + one.length]
    # The tail first: of two versions of a contract every page but one may be the same.
    alike = len(text) == one.length and int(_hashes(text[-HEAD:])[0]) == one.tail
    return alike and _digest(text) == one.digest


def _visible(text: str) -> tuple[Codes, NDArray[np.int64]]:
    """The code points that are neither blank nor invisible, and their places in the text."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    places = np.flatnonzero(~np.isin(codes, _left_out()))
    return codes[places], places


@lru_cache(maxsize=1)
def _left_out() -> Codes:
    """Blanks, and what parsing takes out of a text (`retrieval.parse.cleaning`)."""
    invisible = [0xAD, 0x180E, 0xFEFF, 0xFFFE, 0xFFFF]
    for first, last in (
        (0x0000, 0x0020), (0x007F, 0x009F), (0x200B, 0x200F), (0x2028, 0x202E),
        (0x2060, 0x2069), (0xFFF9, 0xFFFB), (0xD800, 0xDFFF),
    ):  # fmt: skip
        invisible += range(first, last + 1)
    blank = [code for code in range(0x3001) if chr(code).isspace()]
    return np.unique(np.array([*invisible, *blank], dtype=np.uint32))


def _hashes(codes: Codes) -> Hashes:
    """The hash of every run of `HEAD` characters: sum of code times base to the place in the run,
    modulo 2 to the 64."""
    count = len(codes)
    powers = np.cumprod(np.full(count, _BASE, dtype=np.uint64))
    inverse = np.full(count, pow(_BASE, -1, _WORD), dtype=np.uint64)
    sums = np.zeros(count + 1, dtype=np.uint64)
    np.cumsum(codes * powers, out=sums[1:])
    runs: Hashes = (sums[HEAD:] - sums[:-HEAD]) * np.cumprod(inverse)[: count - HEAD + 1]
    return runs


def _digest(codes: Codes) -> bytes:
    return hashlib.sha256(codes.tobytes()).digest()
