"""The guard of the word "cold": no KV page of the document was there before it was measured.

It trusts neither the benchmark's own care nor one counter: the engine must have computed every
token that the measurement needed, and the store must have found no block but those that this very
measurement had computed.
"""

from __future__ import annotations

from backend.types import EngineCounters
from eval.errors import NotCold


def require_cold(
    what: str,
    *,
    before: EngineCounters,
    after: EngineCounters,
    needed_tokens: int,
    computed_tokens: int,
    own_hits: int = 0,
) -> None:
    """Raises NotCold when a page was a hit.

    `needed_tokens` are the document tokens that had to be read and `computed_tokens` those that
    went through the model. `own_hits` are look-ups of blocks computed a moment before within the
    same measurement (a question finds the evidence that was just read for it).
    """
    hits = after.hits - before.hits - own_hits
    if computed_tokens != needed_tokens or hits > 0:
        raise NotCold(
            f"{what} is no cold measurement: {computed_tokens:,} of {needed_tokens:,} document "
            f"tokens were computed and {max(hits, 0)} blocks were found in the cache. Give every "
            "measurement a document of its own, and begin with an empty KV store."
        )
