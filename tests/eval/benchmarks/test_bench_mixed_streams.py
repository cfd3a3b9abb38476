"""Server-sent events, however the bytes come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eval.benchmarks.mixed.streams import ServerEvent, read_events


def events_of(pieces: list[bytes]) -> list[ServerEvent]:
    async def chunks() -> Any:
        for piece in pieces:
            yield piece

    async def run() -> list[ServerEvent]:
        return [event async for event in read_events(chunks())]

    return asyncio.run(run())


def cuts(data: bytes, places: list[int]) -> Iterator[bytes]:
    start = 0
    for place in sorted({place % (len(data) + 1) for place in places}):
        yield data[start:place]
        start = place
    yield data[start:]


@given(
    texts=st.lists(st.text(st.characters(codec="utf-8")), min_size=1, max_size=4),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    places=st.lists(st.integers(0, 10_000), max_size=12),
)
def test_events_are_the_same_however_the_bytes_are_cut(
    texts: list[str], end: str, places: list[int]
) -> None:
    # JSON as servers send it: line separators such as U+2028 and U+0085 are not escaped.
    frames = [
        f": ping{end}event: e{end}data:{json.dumps(text, ensure_ascii=False)}{end}{end}"
        for text in texts
    ]
    data = "".join(frames).encode()
    found = events_of([data])
    assert [json.loads(event.data) for event in found] == texts
    assert events_of(list(cuts(data, places))) == found


def test_an_unfinished_event_and_lines_without_data_give_nothing() -> None:
    assert events_of([b"event: a\n\n", b": x\n\n", b"data: 1\ndata: 2\n\n", b"data: 3\n"]) == [
        ServerEvent("", "1\n2")
    ]
