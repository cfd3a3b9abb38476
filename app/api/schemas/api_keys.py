"""API keys as the REST API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime, Field

from app.api.schemas.common import Body, Entity
from app.api_keys import Role
from app.owners import MAX_CHARS


class ApiKeyCreate(Body):
    """Whose documents the key opens, what else it may do, and until when."""

    owner: str = Field(min_length=1, max_length=MAX_CHARS)
    role: Role = "user"
    expires_at: AwareDatetime | None = None


class ApiKeyPublic(Entity):
    """What is kept of a key. `prefix` is how it begins; `last_used_at` is the begin of an hour."""

    object: Literal["api_key"] = "api_key"
    owner: str
    role: Role
    prefix: str
    active: bool
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


class ApiKeyMade(ApiKeyPublic):
    """A key that was just made: the only reply that ever holds the `key` itself."""

    key: str
