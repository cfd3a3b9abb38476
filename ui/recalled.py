"""A conversation that the API kept, as the talk it was: what its messages say of each question and
answer. Knows the shape of messages, not how they are shown.

An answer is kept as one text. What of it are the document's words is told by its checks: the first
ones look up the citations, one each and in their order, at the quotes' places in the answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from ui.client import Json
from ui.exchange import Exchange, Phase, Piece, Talk

NEVER_ANSWERED = "never_answered"
"""The code of a question without an answer: the server ended between the two."""

_ENDINGS: dict[str, Phase] = {
    "in_progress": "under_way",
    "failed": "failed",
    "cancelled": "cancelled",
}


def recalled(conversation: Json, document_id: str, names: Mapping[str, str]) -> Talk:
    """The talk of a conversation with its messages. It goes on with questions about `document_id`;
    `names` has the documents' names by id. What a question was about is not kept: it is taken to be
    the conversation's documents, unless its answer was found in others."""
    exchanges = []
    for asked, given in _pairs(conversation["messages"]):
        about = tuple(conversation["document_ids"])
        found = _found(given)
        if not found <= set(about):
            about = tuple(sorted(found))
        name = ", ".join(names[one] for one in about if names.get(one))
        exchanges.append(_exchange(Exchange(asked["content"], document_id, name), given))
    return Talk(tuple(exchanges), {document_id: conversation["id"]})


def found_in(conversation: Json) -> frozenset[str]:
    """The documents in which answers were found, or the nearest clauses of those that were not."""
    return frozenset(one for message in conversation["messages"] for one in _found(message))


def cited_names(conversation: Json) -> dict[str, str]:
    """The names by which quotes cite their documents, by id; also of documents deleted since."""
    return {
        str(citation["document_id"]): str(citation["document"])
        for message in conversation["messages"]
        for citation in (message["result"] or {}).get("citations", ())
    }


def _found(given: Json | None) -> frozenset[str]:
    result = (given or {}).get("result") or {}
    places = (*result.get("citations", ()), *result.get("nearest", ()))
    return frozenset(str(one["document_id"]) for one in places if one.get("document_id"))


def _pairs(messages: Sequence[Json]) -> Iterator[tuple[Json, Json | None]]:
    """Each question with the answer right behind it, if there is one."""
    for asked, given in itertools.zip_longest(messages, messages[1:]):
        if asked["role"] == "user":
            answered = given is not None and given["role"] == "assistant"
            yield asked, given if answered else None


def _exchange(asked: Exchange, given: Json | None) -> Exchange:
    changes: Json
    if given is None:
        why = "This question was saved, but its answer never began. Ask it again."
        changes = {"phase": "failed", "error_code": NEVER_ANSWERED, "error": why}
    elif given["result"] is not None:
        changes = _of_result(given["result"])
    else:
        fault = given["error"] or {"code": "", "message": ""}
        changes = {
            "phase": _ENDINGS[given["status"]],
            "pieces": _whole(given["content"]),
            "error_code": fault["code"],
            "error": fault["message"],
        }
    return Exchange(asked.question, asked.document_id, asked.document_name, **changes)


def _of_result(result: Json) -> Json:
    return {
        "phase": "cancelled" if result["finish_reason"] == "cancelled" else "done",
        "pieces": pieces_of(result),
        "citations": tuple(result["citations"]),
        "checks": tuple(result["checks"]),
        "coverage": result["coverage"],
        "result": result,
        "read_as": result["standalone_question"] or "",
    }


def pieces_of(result: Json) -> tuple[Piece, ...]:
    """The answer's text by kind; joined the pieces are the answer. Where the checks don't tell the
    quotes, all of it counts as the server's own words."""
    said, citations = result["answer"], result["citations"]
    quotes = result["checks"][: len(citations)]
    if not citations or len(quotes) < len(citations):
        return _whole(said)
    if any(check["kind"] != "quote" for check in quotes):
        return _whole(said)
    start = said.rfind("\n", 0, quotes[0]["start"]) + 1
    marked = said.find(f"[{len(citations)}]", quotes[-1]["end"])
    end = _before("\n", said, max(marked, quotes[-1]["end"]))
    if not start < end:
        return _whole(said)
    parts = [("notice", said[:start]), ("quote", said[start:end])]
    words = words_end = len(said)
    if result["phrasing"] in ("used", "cut", "marked"):
        # A paragraph of its own; one that says how far was read may follow.
        words = _before("\n\n", said, end)
        if result["status"] != "answered":
            words_end = _before("\n\n", said, words + 2)
    parts += [("notice", said[end:words]), ("phrasing", said[words:words_end])]
    parts.append(("notice", said[words_end:]))
    return tuple(Piece(kind, text) for kind, text in parts if text)


def _before(mark: str, said: str, start: int) -> int:
    """Where the first `mark` from `start` on stands, or the end."""
    found = said.find(mark, start)
    return len(said) if found < 0 else found


def _whole(said: str) -> tuple[Piece, ...]:
    return (Piece("notice", said),) if said else ()
