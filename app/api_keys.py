"""API keys: who may use the server, and as which owner.

A key is random and shown once; what is kept is its SHA-256. That is enough, and needs no slow hash,
because a key has 256 random bits: nobody finds one by trying. A key is looked up by its hash, so
that how long it takes tells nothing about how much of a guessed key is right. Does not know HTTP.
"""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, cast

from sqlalchemy import func, select, tuple_, update
from sqlalchemy.orm import Session

from app.db.models import ApiKeyRow
from app.db.session import Database
from app.errors import AppError, BadParameter, NotFound, Unauthorized
from app.owners import owner_name
from app.paging import Order, Page

_log = logging.getLogger(__name__)

Role = Literal["user", "admin"]
"""An admin makes, lists and revokes keys and reads the metrics. It sees no other owner's documents.
"""
MARK = "fp_"
"""How every key begins, so that scanners of source code know one."""
RANDOM_BYTES = 32
SHOWN_CHARS = len(MARK) + 6
"""Of a key, to tell it from others; 36 of its 256 bits."""
USED_EVERY_S = 3600
"""Use is noted by the hour: a write for every request would cost more than the note is worth."""

_KEY = re.compile(rf"{MARK}[A-Za-z0-9_-]{{43}}")


@dataclass(frozen=True, slots=True)
class Caller:
    """Whom a request comes from."""

    owner: str
    role: Role


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What is kept of a key. `prefix`: how it begins. `last_used_at` is the begin of an hour."""

    id: str
    owner: str
    role: Role
    prefix: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None

    @property
    def active(self) -> bool:
        """Whether it opens the door now."""
        expired = self.expires_at is not None and self.expires_at <= datetime.now(UTC)
        return self.revoked_at is None and not expired


class ApiKeys:
    """The keys of one database. Thread-safe; a change is seen by all processes at once."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def create(
        self, owner: str, *, role: Role = "user", expires_at: datetime | None = None
    ) -> tuple[ApiKey, str]:
        """A new key: what is kept of it, and the key itself, which nobody can show again.

        Raises BadParameter for a bad name or a time of expiry that is over."""
        owner = owner_name(owner)
        if expires_at is not None and expires_at <= datetime.now(UTC):
            raise BadParameter("The key would have expired already.", code="bad_expiry")
        key = MARK + secrets.token_urlsafe(RANDOM_BYTES)
        with self.database.write() as session:
            row = ApiKeyRow(
                id=f"key_{uuid.uuid4().hex}",
                owner=owner,
                role=role,
                prefix=key[:SHOWN_CHARS],
                sha256=_hashed(key),
                created_at=self.database.now(session),
                expires_at=None if expires_at is None else expires_at.timestamp(),
            )
            session.add(row)
            session.flush()
            return _of(row), key

    def authenticate(self, key: str | None) -> Caller:
        """Whose key it is. Raises Unauthorized for none, and for one that is unknown, expired or
        revoked, without saying which."""
        if key is None:
            raise Unauthorized(
                "This server needs an API key. Send it as Authorization: Bearer fp_…, or in the "
                "header X-API-Key. fineprint keys create makes one.",
                code="missing_api_key",
            )
        row = self._usable(key) if _KEY.fullmatch(key) else None
        if row is None:
            raise Unauthorized("The API key is unknown, expired or revoked.")
        return Caller(row.owner, cast("Role", row.role))

    def _usable(self, key: str) -> ApiKeyRow | None:
        with self.database.read() as session:
            row = session.execute(
                select(ApiKeyRow).where(ApiKeyRow.sha256 == _hashed(key))
            ).scalar_one_or_none()
            if row is None:
                return None
            now = self.database.now(session)
        if row.revoked_at is not None or (row.expires_at is not None and row.expires_at <= now):
            return None
        hour = now - now % USED_EVERY_S
        if row.last_used_at is None or row.last_used_at < hour:
            self._note_use(row.id, hour)
        return row

    def _note_use(self, key_id: str, hour: float) -> None:
        try:
            with self.database.write() as session:
                session.execute(
                    update(ApiKeyRow).where(ApiKeyRow.id == key_id).values(last_used_at=hour)
                )
        except AppError as error:
            # The request is as good as before; the next one notes it.
            _log.warning("the use of key %s was not noted: %s", key_id, error)

    def get(self, name: str) -> ApiKey:
        """A key by its id, or by its prefix where only one begins so. Raises NotFound."""
        with self.database.read() as session:
            return _of(_find(session, name))

    def list(
        self, limit: int = 20, after: str | None = None, order: Order = "desc"
    ) -> Page[ApiKey]:
        """Keys by time of creation, revoked ones too, `limit` of them after the key `after`."""
        place = tuple_(ApiKeyRow.created_at, ApiKeyRow.id)
        with self.database.read() as session:
            total = session.execute(select(func.count()).select_from(ApiKeyRow)).scalar_one()
            query = select(ApiKeyRow)
            if after is not None:
                last = _find(session, after)
                mark = tuple_(last.created_at, last.id)
                query = query.where(place > mark if order == "asc" else place < mark)
            if order == "asc":
                query = query.order_by(ApiKeyRow.created_at, ApiKeyRow.id)
            else:
                query = query.order_by(ApiKeyRow.created_at.desc(), ApiKeyRow.id.desc())
            rows = session.execute(query.limit(limit + 1)).scalars().all()
            found = tuple(_of(row) for row in rows[:limit])
        return Page(found, has_more=len(rows) > limit, total=total)

    def revoke(self, name: str) -> ApiKey:
        """End a key for good, from its next request on; the owner's documents stay. Revoking twice
        changes nothing. Raises NotFound."""
        with self.database.write() as session:
            row = _find(session, name)
            if row.revoked_at is None:
                row.revoked_at = self.database.now(session)
            session.flush()
            return _of(row)


def _hashed(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _find(session: Session, name: str) -> ApiKeyRow:
    row = session.get(ApiKeyRow, name)
    if row is not None:
        return row
    begun = session.execute(select(ApiKeyRow).where(ApiKeyRow.prefix == name)).scalars().all()
    if len(begun) != 1:
        some = f"{len(begun)} keys begin with" if begun else "There is no key"
        raise NotFound(f"{some} {name[:80]}. fineprint keys list shows their ids.")
    return begun[0]


def _of(row: ApiKeyRow) -> ApiKey:
    return ApiKey(
        id=row.id,
        owner=row.owner,
        role=cast("Role", row.role),
        prefix=row.prefix,
        created_at=datetime.fromtimestamp(row.created_at, UTC),
        expires_at=_time(row.expires_at),
        last_used_at=_time(row.last_used_at),
        revoked_at=_time(row.revoked_at),
    )


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
