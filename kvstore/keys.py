"""Content keys: a block's KV is named by everything it depends on.

Two blocks with the same key hold the same KV, wherever and in whichever document they stand. The
full tokens are compared before reuse (`KVStore.lookup`), so that a collision can't serve another
text's KV.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence


def block_key(
    *,
    model: str,
    kv_format: str,
    owner: str,
    sinks: Sequence[int],
    token_ids: Sequence[int],
    context: bytes = b"",
) -> bytes:
    """SHA-256 over the model's fingerprint, the KV format, the owner's salt, the sinks and the
    block's own tokens. `context` holds what else the block saw: the anchors when reading is
    chained, nothing when it is independent."""
    digest = hashlib.sha256()
    for part in (model.encode(), kv_format.encode(), owner.encode(), context):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    for ids in (sinks, token_ids):
        digest.update(len(ids).to_bytes(8, "little"))
        digest.update(array("q", ids).tobytes())
    return digest.digest()
