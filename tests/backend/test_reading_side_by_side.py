"""Documents that an engine reads side by side, with more pages than its pool has."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.reading import DocumentReading
from backend.types import DocumentTokens, Request, SamplingParams
from kvstore.types import PAGE_TOKENS

FOUR = SamplingParams(max_tokens=4, ignore_eos=True)
BLOCK = 128


@pytest.mark.parametrize("anchors", [False, True])
def test_documents_that_do_not_fit_together_end_whole(
    tiny_llama: Path, monkeypatch: pytest.MonkeyPatch, anchors: bool
) -> None:
    page = 3 * 2 * 2 * PAGE_TOKENS * 10 * 4
    config = EngineConfig(
        tiny_llama, precision="float32", block_tokens=BLOCK, kv_budget=32 * page, host_budget=0
    )
    engine = Engine.open(replace(config, reading="chained") if anchors else config)
    whole: dict[str, bool] = {}
    read = engine._steps.read

    def note(reading: DocumentReading, indexes: Any, asker: Any = None) -> None:
        read(reading, indexes, asker)
        if asker is None and not reading._left:
            whole[reading.document.key] = not reading.missing(range(len(reading.keys)))

    def document(number: int, blocks: int) -> DocumentTokens:
        ids = tuple(random.Random(number).choices(range(3, 500), k=blocks * BLOCK))
        ranges = engine.split_blocks(len(ids))
        seen = tuple((first, first + 9) for first, _ in ranges) if anchors else ()
        return DocumentTokens(f"d{number}", ids, ranges, anchors=seen, owner="ab"[number % 2])

    monkeypatch.setattr(engine._steps, "read", note)
    try:
        sizes = (10, 10, 1, 16, 5, 2, 9)
        documents = [document(number, blocks) for number, blocks in enumerate(sizes)]
        tickets = [engine.read(one) for one in documents]
        # A question on one that waits doesn't wait for its turn.
        asked = Request("q", tuple(range(40, 60)), FOUR, "d3", ((40, 60),), owner="b")
        assert [event.error for event in engine.generate(asked)] == [""] * 4
        tickets[4].cancel()
        ended = [ticket.wait(60).status for ticket in tickets]
        assert [one for one in ended if one != "done"] in ([], ["cancelled"])
        engine._mail.call(engine._store.check_integrity)
        assert set(whole.values()) == {True} and len(whole) >= len(sizes) - 1
    finally:
        engine.close()
