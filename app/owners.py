"""Owners: whose a document, a conversation or a key is. Without API keys everything is `LOCAL`'s.

An owner is a name and no account: whoever has a key of that name is the owner. Does not know keys.
"""

from __future__ import annotations

import hashlib
import unicodedata

from app.errors import BadParameter

LOCAL = "local"
"""The owner where there are no keys."""
MAX_CHARS = 64


def owner_name(given: str) -> str:
    """The name as it is kept: in NFC, without white space around it. Raises BadParameter for one
    that is empty, too long or has control characters or line breaks in it."""
    name = unicodedata.normalize("NFC", given).strip()
    if not name or len(name) > MAX_CHARS or not name.isprintable():
        raise BadParameter(
            f"An owner's name has 1 to {MAX_CHARS} printable characters.", code="bad_owner"
        )
    return name


def section_of(owner: str) -> str:
    """The owner's part of the file store: nothing for `LOCAL`, whose files lie where they always
    did, else a folder. Nobody's file is where another's is, though its bytes be the same."""
    if owner == LOCAL:
        return ""
    return f"owners/{hashlib.sha256(owner.encode()).hexdigest()[:32]}"
