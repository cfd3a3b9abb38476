"""Server-sent events out of the bytes of a reply, as the WHATWG standard frames them.

Works on bytes because line-based readers also break at characters (U+2028, U+0085) that may stand
inside an event's JSON. Knows the frames, not what they mean.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event; comments are none. `name` is empty where the server gave none."""

    name: str
    data: str


async def read_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[ServerEvent]:
    """Events in order, each as soon as its blank line is there. An event that the stream breaks off
    before that is dropped."""
    name, data = "", list[str]()
    async for line in _lines(chunks):
        if not line:
            if data:
                yield ServerEvent(name, "\n".join(data))
            name, data = "", []
            continue
        field, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        if field == b"event":
            name = text
        elif field == b"data":
            data.append(text)


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Lines that end in LF, CR LF or CR, however the bytes were cut; a last one without an end is
    dropped."""
    waiting = b""
    after_cr = False
    async for chunk in chunks:
        if not chunk:
            continue
        if after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        after_cr = chunk.endswith(b"\r")
        waiting += chunk
        lines = waiting.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        waiting = lines.pop()
        for line in lines:
            yield line
