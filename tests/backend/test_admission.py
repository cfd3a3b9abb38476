"""What is taken in, and what is refused at the door."""

from __future__ import annotations

import threading

import pytest
import torch

from backend.admission import Place, Places, check_pages
from backend.context_plan import plan_context
from backend.errors import EngineBusy, RequestTooLarge
from backend.reading import DocumentReading
from backend.types import DocumentTokens, Request
from kvstore.store import KVStore
from kvstore.types import KVShape


def test_a_full_queue_refuses_but_for_an_owners_first() -> None:
    places = Places(3)
    taken = [places.take("many") for _ in range(3)]
    with pytest.raises(EngineBusy, match="3 questions are waiting"):
        places.take("many")
    first = places.take("one")
    with pytest.raises(EngineBusy):
        places.take("one")
    for owner in ("two", "three"):
        places.take(owner)
    assert places.taken == 6
    with pytest.raises(EngineBusy):
        places.take("four")
    for place in (*taken, *taken, first):
        place.give_back()
    assert places.taken == 2, "each place is given back once"
    places.take("many")


def test_places_are_counted_across_threads() -> None:
    places = Places(1000)
    taken: list[Place] = []

    def take(owner: str) -> None:
        for _ in range(100):
            taken.append(places.take(owner))

    threads = [threading.Thread(target=take, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert places.taken == 400
    for place in taken:
        place.give_back()
    assert places.taken == 0


@pytest.mark.parametrize(("anchors", "pages"), [((), 2 + 1), (((1,), (200,), ()), 2 + 2 + 1)])
def test_blocks_that_never_fit_together_are_refused(
    anchors: tuple[tuple[int, ...], ...], pages: int
) -> None:
    blocks = ((0, 128), (128, 256), (256, 300))
    tokens = DocumentTokens("d", tuple(range(300)), blocks, anchors=anchors)
    store = KVStore(KVShape(1, 1, 4), 8, torch.float32)
    reading = DocumentReading(tokens, "model", "format", store)
    plan = plan_context(Request("q", (1,), evidence=((10, 20), (260, 270))), reading)
    check_pages(plan, pages)
    with pytest.raises(RequestTooLarge, match=f"{pages} KV pages .* pool has {pages - 1}"):
        check_pages(plan, pages - 1)
    check_pages(plan_context(Request("q", (1,), evidence=((0, 9),)), None), 0)
