"""Records as plain values for JSON, and back.

Loses nothing: `record_of(record_fields(record)) == record`, also after a trip through JSON. Does
not know files.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from eval.types import (
    CitedSpan,
    Reply,
    ReplyTimings,
    ReplyUsage,
    SampleRecord,
)


def record_fields(record: SampleRecord) -> dict[str, object]:
    """The record with its reply, as values that JSON knows."""
    return dataclasses.asdict(record)


def record_of(fields: Mapping[str, Any]) -> SampleRecord:
    """The record of `record_fields`. Raises KeyError, TypeError or ValueError for other things."""
    known = {field.name for field in dataclasses.fields(SampleRecord)}
    if unknown := set(fields) - known:
        raise ValueError(f"unknown fields: {', '.join(sorted(unknown))}")
    reply = fields["reply"]
    return SampleRecord(
        **{
            **fields,
            "gold": tuple(fields["gold"]),
            "reply": None if reply is None else _reply(reply),
            "scores": dict(fields["scores"]),
        }
    )


def _reply(fields: Mapping[str, Any]) -> Reply:
    return Reply(
        **{
            **fields,
            "timings": ReplyTimings(**fields["timings"]),
            "citations": tuple(CitedSpan(**citation) for citation in fields["citations"]),
            "marked": tuple(fields["marked"]),
            "hits": tuple((start, end) for start, end in fields["hits"]),
            "usage": ReplyUsage(**fields["usage"]),
        }
    )
