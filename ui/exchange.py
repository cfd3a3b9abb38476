"""One question and what has been heard of its answer: plain data that belongs to one browser
session. Knows the API's events, not how they are shown."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from ui.client import Json
from ui.events import StreamEvent

Phase = Literal[
    "waiting", "searching", "writing", "reading", "done", "failed", "cancelled", "under_way"
]
"""`under_way`: it was being answered for somebody else when this session looked."""
Stand = Literal["", "framework", "confirmed", "revised"]
"""What an answer is that came before its document was read: a framework, and then what became of
it. Empty for an answer from a document that was read."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive text of one kind: the document's ("quote"), the model's ("phrasing") or the
    server's own ("notice")."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and its answer as far as it has come. The pieces' texts joined are the answer,
    in which the checks' `start` and `end` count. `read_as` is what a question that leans on earlier
    ones was taken for; empty when it stands alone. Of a framework answer that was revised,
    `changed` names what is different now, and `earlier` is what was said at `earlier_coverage`.
    While it is `waiting`, `ahead` is how many questions come before it, None while not known."""

    question: str
    document_id: str
    document_name: str
    phase: Phase = "waiting"
    pieces: tuple[Piece, ...] = ()
    citations: tuple[Json, ...] = ()
    checks: tuple[Json, ...] = ()
    coverage: Json | None = None
    result: Json | None = None
    error_code: str = ""
    error: str = ""
    read_as: str = ""
    stand: Stand = ""
    changed: tuple[str, ...] = ()
    earlier: str = ""
    earlier_coverage: Json | None = None
    ahead: int | None = None

    @property
    def running(self) -> bool:
        """More is to come."""
        return self.phase in ("waiting", "searching", "writing", "reading")

    @property
    def said(self) -> str:
        """The answer's text as far as it has come."""
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Talk:
    """What one session asked, oldest first, and its conversation on the server per document."""

    exchanges: tuple[Exchange, ...] = ()
    conversations: dict[str, str] = field(default_factory=dict)

    def with_last(self, exchange: Exchange) -> Talk:
        """The talk with its last exchange replaced."""
        return replace(self, exchanges=(*self.exchanges[:-1], exchange))


def heard(exchange: Exchange, event: StreamEvent) -> Exchange:
    """The exchange after one event. Events that add nothing to what is shown change nothing."""
    data = event.data
    match event.name:
        case "answer.waiting":
            return replace(exchange, ahead=data["ahead"])
        case "answer.created":
            read_as = data.get("standalone_question") or ""
            return replace(exchange, phase="searching", read_as=read_as)
        case "answer.coverage":
            return replace(exchange, coverage=data)
        case "answer.delta":
            pieces = exchange.pieces
            if pieces and pieces[-1].kind == data["kind"]:
                joined = Piece(data["kind"], pieces[-1].text + data["text"])
                return replace(exchange, phase="writing", pieces=(*pieces[:-1], joined))
            added = Piece(data["kind"], data["text"])
            return replace(exchange, phase="writing", pieces=(*pieces, added))
        case "citation":
            return replace(exchange, citations=(*exchange.citations, data))
        case "check":
            return replace(exchange, checks=(*exchange.checks, data))
        case "answer.framework":
            read = data["coverage"]
            return replace(
                exchange, phase="reading", stand="framework", coverage=read, earlier_coverage=read
            )
        case "answer.confirmed":
            return replace(exchange, stand="confirmed", coverage=data["coverage"])
        case "answer.revised":
            # The new answer takes the place of the one before, from its beginning.
            return replace(
                exchange,
                phase="writing",
                stand="revised",
                changed=tuple(data["changed"]),
                earlier=exchange.said,
                pieces=(),
                citations=(),
                checks=(),
                coverage=data["coverage"],
            )
        case "answer.completed":
            return _completed(exchange, data)
        case "error":
            phase: Phase = "cancelled" if data["code"] == "cancelled" else "failed"
            return replace(exchange, phase=phase, error_code=data["code"], error=data["message"])
        case _:
            return exchange


def _completed(exchange: Exchange, result: Json) -> Exchange:
    same = exchange.said == result["answer"]
    pieces = exchange.pieces if same else (Piece("notice", result["answer"]),)
    return replace(
        exchange,
        phase="cancelled" if result["state"] == "cancelled" else "done",
        pieces=pieces,
        citations=tuple(result["citations"]),
        checks=tuple(result["checks"]),
        coverage=result["coverage"],
        result=result,
    )
