"""What a request must be to be taken in: small enough to be served at all, and not one too many in
the queue."""

from __future__ import annotations

import threading

from backend.context_plan import ContextPlan
from backend.errors import EngineBusy, RequestTooLarge, WindowExceeded
from backend.types import Request
from kvstore.types import PAGE_TOKENS


class Places:
    """Places in the queue of requests that have no context yet. Safe from any thread.

    Counted from the moment a request is taken in: the engine's thread, which queues it, may be busy
    with a step for seconds.
    """

    def __init__(self, most: int) -> None:
        """`most` requests wait at a time."""
        self._most = most
        self._lock = threading.Lock()
        self._taken: dict[str, int] = {}

    @property
    def taken(self) -> int:
        """Requests that wait."""
        with self._lock:
            return sum(self._taken.values())

    def take(self, owner: str) -> Place:
        """A place for a request of this owner. When the queue is full, an owner of whom nothing
        waits still gets one, as long as it has not twice its length. Raises EngineBusy."""
        with self._lock:
            waiting, own = sum(self._taken.values()), self._taken.get(owner, 0)
            if waiting >= self._most * (1 if own else 2):
                raise EngineBusy(f"{waiting} questions are waiting; try again in a moment")
            self._taken[owner] = own + 1
        return Place(self, owner)

    def give_back(self, owner: str) -> None:
        """Use `Place.give_back`."""
        with self._lock:
            self._taken[owner] -= 1
            if not self._taken[owner]:
                del self._taken[owner]


class Place:
    """One request's place. For one thread at a time."""

    def __init__(self, places: Places, owner: str) -> None:
        """Use `Places.take`."""
        self._places: Places | None = places
        self._owner = owner

    def give_back(self) -> None:
        """The request waits no more; harmless the second time."""
        if self._places is not None:
            self._places.give_back(self._owner)
            self._places = None


def check_pages(plan: ContextPlan, pool_pages: int) -> None:
    """Raises RequestTooLarge for a request whose blocks can never be in the pool together."""
    if plan.source is None:
        return
    blocks = plan.source.document.blocks
    sizes = (blocks[index][1] - blocks[index][0] for index in plan.needed())
    pages = sum(-(-size // PAGE_TOKENS) for size in sizes)
    if pages > pool_pages:
        raise RequestTooLarge(
            f"The evidence stands in blocks of {pages} KV pages and the pool has {pool_pages}: "
            "raise the KV budget (FINEPRINT_KV_BUDGET_MB) or give less evidence"
        )


def check_request(request: Request, extra: int, max_positions: int) -> None:
    """Raises RequestTooLarge for a prompt that is empty or all sinks, WindowExceeded for one that
    needs more positions than the model has, with its evidence, its answer and `extra` tokens."""
    if not request.prompt_ids:
        raise RequestTooLarge("The prompt is empty; give at least one token")
    if not 0 <= request.sink_len < len(request.prompt_ids):
        raise RequestTooLarge(
            f"The first {request.sink_len} of {len(request.prompt_ids)} prompt tokens are to "
            "be sinks; at least one must follow them"
        )
    evidence = sum(last - first for first, last in request.evidence)
    tokens = len(request.prompt_ids) + evidence + extra + request.sampling.max_tokens
    if tokens > max_positions:
        raise WindowExceeded(
            f"The prompt, its evidence and the answer need {tokens} tokens and the model takes "
            f"{max_positions}: give less evidence or a lower max_tokens"
        )
