"""Reads a stream of server-sent events. Knows the wire format, not what the events mean."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event; `data` is its JSON object, `id` counts up within one answer (0: none sent)."""

    name: str
    data: dict[str, Any]
    id: int


async def read_events(lines: AsyncIterator[str]) -> AsyncIterator[StreamEvent]:
    """Events of a stream given line by line. Comments (pings) are skipped; an event that the
    stream breaks off before its blank line is dropped, as the standard asks for."""
    name, event_id = "", 0
    data: list[str] = []
    async for line in lines:
        if line == "":
            if data:
                yield StreamEvent(name, json.loads("\n".join(data)), event_id)
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
        elif field == "id":
            event_id = int(value)
