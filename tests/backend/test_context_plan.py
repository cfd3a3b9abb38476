"""What a request's attention is to see."""

from __future__ import annotations

import pytest
import torch

from backend.context_plan import plan_context
from backend.errors import RequestTooLarge
from backend.reading import DocumentReading
from backend.types import DocumentTokens, Request
from kvstore.store import KVStore
from kvstore.types import KVShape

STORE = KVStore(KVShape(1, 1, 4), 8, torch.float32)
DOCUMENT = DocumentTokens("d", tuple(range(300)), ((0, 128), (128, 256), (256, 300)), sinks=(7, 8))


def test_a_prompt_without_a_document_keeps_its_beginning() -> None:
    # The sinks are not read again with the rest of the prompt, so they must be in the context.
    assert plan_context(Request("q", (1, 2, 3, 4), sink_len=2), None).sinks == (1, 2)


def test_what_lies_outside_the_document_is_refused() -> None:
    reading = DocumentReading(DOCUMENT, "model", "format", STORE)
    for outside in ((290, 301), (-1, 5), (5, 5)):
        with pytest.raises(RequestTooLarge, match="300 tokens"):
            plan_context(Request("q", (1,), document_key="d", evidence=(outside,)), reading)
    for place in (300, -1):
        with pytest.raises(RequestTooLarge, match=f"Anchor {place}"):
            plan_context(Request("q", (1,), document_key="d", anchors=(place,)), reading)


def test_the_best_evidence_is_read_first() -> None:
    reading = DocumentReading(DOCUMENT, "model", "format", STORE)
    request = Request("q", (1,), document_key="d", evidence=((0, 10), (120, 130)), anchors=(299,))
    plan = plan_context(request, reading)
    assert plan.needed() == plan.missing() == [2, 0, 1]
    assert plan.sinks == DOCUMENT.sinks
