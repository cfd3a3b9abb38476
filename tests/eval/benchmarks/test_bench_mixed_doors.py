"""When the clock of a first token starts and stops, against a server that sends everything but text
first, in pieces cut anywhere (as B46 of the fault reports has it)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from eval.benchmarks.mixed.clock import Clock
from eval.benchmarks.mixed.completions import CompletionsDoor
from eval.benchmarks.mixed.doors import Door
from eval.benchmarks.mixed.rest import RestDoor
from eval.benchmarks.mixed.types import LoadRequest, PlantedQuestion, RequestRecord
from eval.errors import PeerError

Script = Sequence[tuple[float, bytes]]
"""(milliseconds from the request, what is sent then)."""
Reply = tuple[int, dict[str, str], bytes | Script]

FIRST_MS = 1000.0
JITTER_MS = 4000.0  # What a busy machine may add.
TEXT = "“手续费 is EUR 5,000.50”"


class FakeServer:
    """A bare HTTP server. `answers` are the scripts of the streams, one a request, the last one for
    all that follow; other replies come from `pages`, by method and path."""

    def __init__(self) -> None:
        self.answers: list[Reply] = []
        self.pages: dict[str, Reply] = {}
        self.asked: list[tuple[str, bytes]] = []
        self.before_body_s = 0.0

    @asynccontextmanager
    async def open(self) -> Any:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**16)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            fields = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
            await asyncio.sleep(self.before_body_s)
            body = await reader.readexactly(int(fields.get("content-length", 0)))
            name = " ".join(lines[0].split()[:2])
            self.asked.append((name, body))
            await self._send(writer, self._reply(name))
        finally:
            writer.close()

    def _reply(self, name: str) -> Reply:
        if name in self.pages:
            return self.pages[name]
        if self.answers:
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return 404, {}, b'{"code": "not_found", "detail": "nothing there"}'

    async def _send(self, writer: asyncio.StreamWriter, reply: Reply) -> None:
        status, headers, body = reply
        script = [(0.0, body)] if isinstance(body, bytes) else body
        lines = [f"HTTP/1.1 {status} x", "Transfer-Encoding: chunked", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        began = asyncio.get_running_loop().time()
        for at_ms, piece in script:
            await asyncio.sleep(began + at_ms / 1000 - asyncio.get_running_loop().time())
            writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()


def split(at_ms: float, frame: bytes, parts: int = 4) -> list[tuple[float, bytes]]:
    """The frame in parts that cut through lines and characters, 5 ms apart, the last at `at_ms`."""
    size = -(-len(frame) // parts)
    pieces = [frame[start : start + size] for start in range(0, len(frame), size)]
    last = len(pieces) - 1
    return [(at_ms - 5 * (last - place), piece) for place, piece in enumerate(pieces)]


def event(name: str, **data: object) -> bytes:
    body = json.dumps({"type": name, **data}, ensure_ascii=False)
    return f"id: 1\nevent: {name}\ndata: {body}\n\n".encode()


def chunk(delta: dict[str, object], finish: str | None = None, **more: object) -> bytes:
    body = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n".encode()


COMPLETED = {
    "status": "answered",
    "finish_reason": "quote",
    "timings": {"queue_ms": 2.0, "ttft_ms": 900.0},
    "usage": {"prompt_tokens": 9, "cached_tokens": 3, "read_tokens": 0, "completion_tokens": 4},
}


def rest_script(text: str = TEXT, first_ms: float = FIRST_MS) -> Script:
    return [
        (10, event("answer.created", id="ans_1")),
        (20, b": ping\n\n"),
        (50, event("answer.coverage", read_tokens=0, total_tokens=500)),
        (60, event("answer.delta", text="\n ", kind="phrasing")),
        *split(first_ms, event("answer.delta", text=text, kind="quote")),
        (first_ms + 20, event("answer.completed", **COMPLETED)),
    ]


def openai_script(text: str = TEXT, first_ms: float = FIRST_MS) -> Script:
    usage = {"prompt_tokens": 520, "prompt_tokens_details": {"cached_tokens": 0}}
    return [
        (10, chunk({"role": "assistant"})),
        (15, chunk({"role": "assistant", "content": ""})),
        (20, b": keep-alive\r\n\r\n"),
        (50, b'event: status\ndata: {"status": "retrieving"}\n\n'),
        *split(first_ms, chunk({"content": text})),
        (first_ms + 20, chunk({"content": "."}, "stop")),
        (first_ms + 25, b'data: {"choices": [], "usage": ' + json.dumps(usage).encode() + b"}\n\n"),
        (first_ms + 30, b"data: [DONE]\n\n"),
    ]


SSE = {"Content-Type": "text/event-stream"}


def document(**changes: object) -> bytes:
    fields: dict[str, object] = {
        "id": "doc_1",
        "duplicate": False,
        "askable": True,
        "status": "completed",
        "ready_tokens": 500,
        "total_tokens": 500,
        "timings": {"parse_ms": 1.0, "index_ms": None, "read_ms": 7.0},
        "read": {"computed_tokens": 500, "reused_tokens": 0},
    }
    return json.dumps(fields | changes).encode()


def rest_server(*scripts: Script | Reply, **changes: object) -> FakeServer:
    server = FakeServer()
    server.pages["POST /api/v1/documents"] = (202, {}, document(**changes))
    server.pages["GET /api/v1/documents/doc_1"] = (200, {}, document())
    server.answers = [s if isinstance(s, tuple) else (200, SSE, s) for s in scripts]
    return server


def openai_server(*scripts: Script | Reply) -> FakeServer:
    server = FakeServer()
    server.answers = [s if isinstance(s, tuple) else (200, SSE, s) for s in scripts]
    return server


QUESTIONS = tuple(PlantedQuestion(f"What is fee {n}?", "5,000.50") for n in range(3))
REQUEST = LoadRequest("r1", "cold", "[abc.1] Text. " * 60, QUESTIONS, 500, "short", 16)
QUICK: Script = rest_script(first_ms=30)


def visited(
    server: FakeServer, door: Callable[[str], Door], request: LoadRequest = REQUEST
) -> RequestRecord:
    async def run() -> RequestRecord:
        async with server.open() as url:
            opened = door(url)
            try:
                return await opened.serve(request, 0.0, Clock())
            finally:
                await opened.close()

    return asyncio.run(run())


def rest(url: str) -> Door:
    return RestDoor(url, timeout_s=20)


def openai(url: str) -> Door:
    return CompletionsDoor(url, model="m", timeout_s=20)


def test_rest_first_token_is_the_first_text() -> None:
    record = visited(rest_server(rest_script(), QUICK), rest)
    assert record.fault is None
    assert record.ttft_any_ms == pytest.approx(FIRST_MS + JITTER_MS / 2, abs=JITTER_MS / 2)
    first, warm = record.answers
    assert FIRST_MS - 5 <= first.ttft_ms <= record.ttft_any_ms
    assert (first.role, first.first_kind, first.right) == ("any", "quote", True)
    assert first.characters == len(TEXT) + 2
    assert first.server_timings["queue_ms"] == 2.0
    assert warm.role == "warm" and record.ttft_warm_ms == pytest.approx(warm.ttft_ms, abs=200)


def test_openai_first_token_is_the_first_text() -> None:
    record = visited(openai_server(openai_script(), openai_script(first_ms=30)), openai)
    assert record.fault is None
    assert record.ttft_any_ms == pytest.approx(FIRST_MS + JITTER_MS / 2, abs=JITTER_MS / 2)
    assert record.ttft_grounded_ms == record.ttft_any_ms, "the prompt holds the whole document"
    assert record.answers[0].right and record.answers[0].finish_reason == "stop"


def test_a_buffering_proxy_delays_the_first_token() -> None:
    whole = b"".join(piece for _, piece in rest_script())
    record = visited(rest_server([(400.0, whole)], QUICK), rest)
    assert record.ttft_any_ms is not None and 400 <= record.ttft_any_ms < 400 + JITTER_MS


@pytest.mark.parametrize(
    ("server", "door"),
    [
        (rest_server([s for s in QUICK if b'"quote"' not in s[1]][:4] + [QUICK[-1]]), rest),
        (
            openai_server(openai_script("  \n", first_ms=30)[:-3] + [(60.0, b"data: [DONE]\n\n")]),
            openai,
        ),
    ],
)
def test_a_stream_without_text_is_a_failure(
    server: FakeServer, door: Callable[[str], Door]
) -> None:
    record = visited(server, door)
    assert record.status == "failed" and record.fault is not None
    assert record.fault.code == "no_text"
    assert record.ttft_any_ms is None and record.answers == ()


def test_the_clock_runs_while_the_body_is_sent() -> None:
    # Far more than the buffers of a socket: the client is held until the server begins to read.
    long = LoadRequest("r1", "cold", "word " * 3_000_000, QUESTIONS, 500, "long", 16)
    server = rest_server(QUICK)
    server.before_body_s = 0.3
    record = visited(server, rest, long)
    upload = record.between("sent", "accepted")
    assert upload is not None and upload >= 300
    assert record.ttft_any_ms is not None and record.ttft_any_ms >= 300 + 300 + 25
    assert record.ttft_any_from_question_ms is not None
    assert record.ttft_any_from_question_ms < record.ttft_any_ms - 290


def test_a_wait_before_sending_counts_from_the_arrival() -> None:
    async def run() -> RequestRecord:
        async with rest_server(QUICK).open() as url:
            door = RestDoor(url, timeout_s=20)
            clock = Clock()
            await asyncio.sleep(0.4)
            record = await door.serve(REQUEST, 100.0, clock)
            await door.close()
            return record

    record = asyncio.run(run())
    assert 299 <= (record.between("arrival", "sent") or 0) < 299 + JITTER_MS
    assert record.ttft_any_ms is not None and record.ttft_any_ms >= 300 + 25


FAULTS: dict[str, tuple[FakeServer, Callable[[str], Door], str, str]] = {
    "an error event, even after text": (
        rest_server([*QUICK[:-1], (60.0, event("error", code="engine_busy", message="Later."))]),
        rest,
        "engine_busy",
        "Later.",
    ),
    "a stream that breaks off": (rest_server(QUICK[:-1]), rest, "stream_ended", "before its last"),
    "data that is no JSON": (
        rest_server([(5.0, b"event: answer.delta\ndata: {nothing\n\n")]),
        rest,
        "bad_reply",
        "nothing",
    ),
    "a refused question": (
        rest_server((409, {}, b'{"code": "not_ready", "detail": "Wait.", "title": "x"}')),
        rest,
        "not_ready",
        "Wait.",
    ),
    "a failed ingestion": (
        rest_server(QUICK, askable=False, status="queued"),
        rest,
        "bad_file",
        "No text in it.",
    ),
    "a document beyond the server's memory": (
        rest_server(QUICK, ready_tokens=0, warnings=[{"code": "w", "message": "Not read ahead."}]),
        rest,
        "read_on_demand",
        "Not read ahead.",
    ),
    "a prompt beyond the window": (
        openai_server(
            (
                400,
                {},
                b'{"error": {"message": "At most 8192 tokens.", "type": "invalid_request_error",'
                b' "code": "context_length_exceeded"}}',
            )
        ),
        openai,
        "context_length_exceeded",
        "At most 8192 tokens.",
    ),
    "an error inside the stream": (
        openai_server(
            [(5.0, b'data: {"error": {"message": "Out of memory.", "type": "oom"}}\n\n')]
        ),
        openai,
        "oom",
        "Out of memory.",
    ),
    "a stream cut off after text": (
        openai_server([*openai_script(first_ms=30)[:-3]]),
        openai,
        "stream_ended",
        "before its last",
    ),
    "a page that is no API": (
        openai_server((502, {}, b"<html>Bad gateway</html>")),
        openai,
        "http_502",
        "Bad gateway",
    ),
}
FAULTS["a failed ingestion"][0].pages["GET /api/v1/documents/doc_1"] = (
    200,
    {},
    document(
        askable=False, status="failed", error={"code": "bad_file", "message": "No text in it."}
    ),
)


@pytest.mark.parametrize("case", FAULTS)
def test_failures_are_recorded_with_the_servers_words(case: str) -> None:
    server, door, code, words = FAULTS[case]
    record = visited(server, door)
    assert record.status == "failed" and record.fault is not None
    assert record.fault.code == code
    assert words in record.fault.message
    assert record.timeline["arrival"] == 0.0 and "done" not in record.timeline


def test_a_server_that_hangs_is_a_timeout() -> None:
    record = visited(
        rest_server([(10, event("answer.created", id="a")), (60_000, b"")]),
        lambda url: RestDoor(url, timeout_s=0.4),
    )
    assert record.fault is not None
    assert (record.fault.stage, record.fault.code) == ("read_complete", "timeout")


def test_a_lost_connection_is_a_failure() -> None:
    record = visited(FakeServer(), lambda url: RestDoor("http://127.0.0.1:1", timeout_s=5))
    assert record.fault is not None
    assert (record.fault.stage, record.fault.code) == ("upload", "connection")


@pytest.mark.parametrize("status", [429, 503])
def test_a_full_server_is_waited_for_and_the_waiting_counts(status: int) -> None:
    full = (status, {"Retry-After": "1"}, b'{"code": "too_many_questions", "detail": "Full."}')
    record = visited(rest_server(full, QUICK), rest)
    assert record.fault is None
    assert record.answers[0].retries == 1 and record.answers[1].retries == 0
    assert record.ttft_any_ms is not None and 1000 < record.ttft_any_ms < 1000 + JITTER_MS


def test_grounded_is_the_first_answer_asked_after_reading() -> None:
    """The document is read while the first answer still goes on; a second question is then asked
    without waiting for the end of the first."""
    slow = [*rest_script(first_ms=40)[:-1], (900.0, event("answer.completed", **COMPLETED))]
    server = rest_server(
        slow, rest_script(first_ms=60), QUICK, ready_tokens=0, status="in_progress"
    )
    states = iter([document(status="in_progress", ready_tokens=250)] * 3)

    def state(name: str) -> Reply:
        if name == "GET /api/v1/documents/doc_1":
            return 200, {}, next(states, document(read=None))
        return FakeServer._reply(server, name)

    server._reply = state  # type: ignore[method-assign]
    record = visited(server, rest)
    assert record.fault is None
    roles = [answer.role for answer in record.answers]
    assert roles == ["grounded", "any", "warm"], "in order of their ends"
    timeline = record.timeline
    order = ["sent", "accepted", "askable", "first_text", "read_complete", "grounded_text"]
    assert sorted(order, key=lambda name: timeline[name]) == order
    assert timeline["grounded_text"] - timeline["read_complete"] >= 55
    assert timeline["grounded_text"] < timeline["warm_asked"]
    assert timeline["warm_asked"] >= 900, "after both answers"
    questions = [json.loads(body)["question"] for name, body in server.asked if "answers" in name]
    assert questions == [question.text for question in QUESTIONS]
    assert record.computed_tokens is None, "the server did not tell"


def test_a_read_document_needs_no_second_question() -> None:
    server = rest_server(QUICK)
    record = visited(server, rest)
    assert [answer.role for answer in record.answers] == ["any", "warm"]
    assert record.ttft_grounded_ms == record.ttft_any_ms
    assert (record.document_tokens, record.computed_tokens, record.reused_tokens) == (500, 500, 0)


def test_an_answer_that_had_to_read_again_is_not_warm() -> None:
    usage = {**COMPLETED["usage"], "read_tokens": 64}  # type: ignore[dict-item]
    evicted = [*QUICK[:-1], (60.0, event("answer.completed", **{**COMPLETED, "usage": usage}))]
    record = visited(rest_server(QUICK, evicted), rest)
    assert record.fault is None and record.ttft_warm_ms is None


def test_a_known_document_reused_all_that_its_answers_did_not_read() -> None:
    usage = {**COMPLETED["usage"], "read_tokens": 100}  # type: ignore[dict-item]
    partly = [*QUICK[:-1], (60.0, event("answer.completed", **{**COMPLETED, "usage": usage}))]
    record = visited(rest_server(partly, QUICK, duplicate=True), rest)
    assert record.known
    assert (record.computed_tokens, record.reused_tokens) == (100, 400)


def counted(*cached: int | None) -> RequestRecord:
    """A peer that adds 20 tokens to a prompt and says what was cached."""
    scripts: list[Script | Reply] = [(200, {}, b'{"usage": {"prompt_tokens": 21}}')]
    for number in cached:
        details = None if number is None else {"cached_tokens": number}
        usage = {"prompt_tokens": 520, "prompt_tokens_details": details}
        last = b'data: {"choices": [], "usage": ' + json.dumps(usage).encode() + b"}\n\n"
        scripts.append([*openai_script(first_ms=30)[:-2], (60.0, last)])
    server = openai_server(*scripts)

    async def run() -> RequestRecord:
        async with server.open() as url:
            door = CompletionsDoor(url, model="m", timeout_s=20)
            assert (await door.prepare())["tokens_added_to_a_prompt"] == 20
            record = await door.serve(REQUEST, 0.0, Clock())
            await door.close()
            return record

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("cached", "reused", "warm"),
    [
        ((16, 512), 0, True),  # only what the server itself puts before the document
        ((0, 0), 0, False),  # it keeps no cache
        ((512, 512), 492, True),
        ((None, None), None, False),
    ],
)
def test_a_peers_usage_tells_what_was_cached(
    cached: tuple[int | None, ...], reused: int | None, warm: bool
) -> None:
    record = counted(*cached)
    assert record.fault is None
    assert (record.document_tokens, record.reused_tokens) == (500, reused)
    assert (record.ttft_warm_ms is not None) is warm


def test_a_thought_is_text() -> None:
    script = [(30.0, chunk({"reasoning_content": "Hm"})), *openai_script(first_ms=2000)]
    record = visited(openai_server(script, openai_script(first_ms=30)), openai)
    assert record.answers[0].first_kind == "reasoning"
    assert record.ttft_any_ms is not None and record.ttft_any_ms < 1990


def test_servers_that_cannot_be_measured_are_told() -> None:
    async def run(door: Door, prepare: Callable[[], Awaitable[object]]) -> None:
        try:
            await prepare()
        finally:
            await door.close()

    for door in (rest("http://127.0.0.1:1"), openai("http://127.0.0.1:1/v1")):
        with pytest.raises(PeerError, match="127.0.0.1:1"):
            asyncio.run(run(door, door.prepare))


def test_only_own_documents_are_deleted() -> None:
    server = rest_server(QUICK)
    server.pages["DELETE /api/v1/documents/doc_1"] = (200, {}, b"{}")

    async def run(duplicate: bool) -> int:
        server.pages["POST /api/v1/documents"] = (202, {}, document(duplicate=duplicate))
        server.asked.clear()
        async with server.open() as url:
            door = RestDoor(url, timeout_s=20)
            await door.serve(REQUEST, 0.0, Clock())
            await door.forget()
            await door.forget()
            await door.close()
        return sum(name.startswith("DELETE") for name, _ in server.asked)

    assert asyncio.run(run(duplicate=False)) == 1
    assert asyncio.run(run(duplicate=True)) == 0
