"""A peer on the other side of HTTP: when its first word came, what it refused, what was counted."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from eval.errors import PeerError
from eval.runs.folder import load_run
from eval.runs.peer_client import PeerClient, PromptTooLong, _retry_after
from eval.runs.sampling import Wanted

Maker = Callable[..., Path]
Runner = Callable[..., dict[str, Any]]
MESSAGES = [{"role": "user", "content": "?"}]


@dataclass
class Script:
    """What the server sends: (seconds to wait, bytes) in turn after a status and headers."""

    parts: Sequence[tuple[float, bytes]] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


def chunk(**fields: Any) -> bytes:
    return b"data: " + json.dumps(fields, ensure_ascii=False).encode() + b"\n\n"


def words(text: str, finish: str | None = None) -> bytes:
    return chunk(choices=[{"index": 0, "delta": {"content": text}, "finish_reason": finish}])


def _error(message: str) -> bytes:
    return json.dumps({"error": {"message": message}}).encode()


ROLE = chunk(choices=[{"index": 0, "delta": {"role": "assistant", "content": ""}}])
USAGE = chunk(
    choices=[],
    usage={
        "prompt_tokens": 40, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 16}
    },
)  # fmt: skip
DONE = b"data: [DONE]\n\n"


class Peer:
    """A server that answers the n-th completion with the n-th script, the last one for ever."""

    def __init__(self, *scripts: Script, models: int = 200) -> None:
        self.scripts, self.asked, self.keys = list(scripts), list[dict[str, Any]](), list[str]()
        peer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                return

            def do_GET(self) -> None:
                self.send_response(models)
                self.end_headers()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                script = peer.scripts[min(len(peer.asked), len(peer.scripts) - 1)]
                peer.asked.append(json.loads(body))
                peer.keys.append(self.headers.get("Authorization", ""))
                self.send_response(script.status)
                for name, value in script.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                for pause, data in script.parts:
                    time.sleep(pause)
                    self.wfile.write(data)
                    self.wfile.flush()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self.server.server_address[1]}/v1"


@contextmanager
def serving(*scripts: Script, models: int = 200) -> Iterator[Peer]:
    peer = Peer(*scripts, models=models)
    thread = threading.Thread(target=peer.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield peer
    finally:
        peer.server.shutdown()
        peer.server.server_close()
        thread.join()


@contextmanager
def asking(*scripts: Script, **more: Any) -> Iterator[PeerClient]:
    with serving(*scripts) as peer, closing(PeerClient(peer.endpoint, "m", **more)) as client:
        yield client


def test_the_first_word_is_the_first_content() -> None:
    split = words("五", None)
    script = Script(
        [
            (0.01, ROLE), (0.02, b": keep-alive\n\n"), (0.03, b"event: status\n"),
            (0.0, chunk(status="retrieving")), (0.4, split[:30]), (0.05, split[30:]),
            (0.1, words("天", "stop")), (0.0, USAGE), (0.0, DONE),
        ]
    )  # fmt: skip
    with asking(script) as client:
        completion = client.complete(MESSAGES, 8)
    assert completion.text == "五天" and completion.finish_reason == "stop"
    assert 480 <= completion.ttft_ms < 4800
    assert completion.total_ms >= completion.ttft_ms + 90
    assert (completion.prompt_tokens, completion.cached_tokens) == (40, 16)
    assert completion.completion_tokens == 2 and completion.waited_ms == 0


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([(0, ROLE), (0, DONE)], "no content"),
        ([(0, ROLE), (0, chunk(error={"message": "out of memory"}))], "out of memory"),
        ([(0, b"data: {broken\n\n")], "no JSON"),
        ([], "no content"),
    ],
)
def test_a_stream_without_an_answer_is_an_error(
    parts: list[tuple[float, bytes]], told: str
) -> None:
    with asking(Script(parts)) as client, pytest.raises(PeerError, match=told):
        client.complete(MESSAGES, 8)


def test_a_pause_that_the_server_asks_for_is_kept() -> None:
    busy = Script(status=429, headers={"Retry-After": "0.2"})
    good = Script([(0, words("yes", "stop")), (0, DONE)])
    with asking(busy, busy, good) as client:
        completion = client.complete(MESSAGES, 8)
    assert completion.text == "yes" and completion.waited_ms == pytest.approx(400)
    assert completion.ttft_ms >= 400


@pytest.mark.parametrize(
    ("script", "kind", "told"),
    [
        (Script(status=503), PeerError, "503"),
        (Script(status=429, headers={"Retry-After": "9999"}), PeerError, "9999"),
        (Script([(0, _error("no such model"))], 404), PeerError, "no such model"),
        (Script([(0, _error("maximum context length is 8"))], 400), PromptTooLong, "maximum"),
    ],
)
def test_a_refusal_is_told(script: Script, kind: type[PeerError], told: str) -> None:
    with asking(script) as client:
        with pytest.raises(kind, match=told) as caught:
            client.complete(MESSAGES, 8)
        assert type(caught.value) is kind


def test_a_slow_answer_ends() -> None:
    late, trickle = [(1.0, words("late"))], [(0.1, words("a"))] * 10
    for parts in (late, trickle):
        with (
            asking(Script(parts), timeout_s=0.3) as client,
            pytest.raises(PeerError, match=r"within 0\.3 s"),
        ):
            client.complete(MESSAGES, 8)


def test_retry_after_may_be_a_date() -> None:
    assert _retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert _retry_after("3") == 3
    assert _retry_after("soon") is None and _retry_after("") is None


def test_a_run_against_a_peer(run_set: Runner, question_set: Maker, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret-key\n", encoding="utf-8")
    right = Script(
        [(0, ROLE), (0, words("EUR 1,250.00 and 99 days", "stop")), (0, USAGE), (0, DONE)]
    )
    silent = Script([(0, words("Not in the document.", "stop")), (0, DONE)])
    broken = Script([(0, b"no")], 500)
    with serving(right, broken, silent) as peer:
        summary = run_set(
            "peer", question_set(documents=1), endpoint=peer.endpoint.replace("//", "//u:pw@"),
            peer_model="m", api_key_file=tmp_path / "key", switches=("answer=checked",),
        )  # fmt: skip
    assert (summary["n"], summary["failed"], summary["refusal_accuracy"]) == (3, 1, 1.0)
    assert summary["answer_nll"] is None
    first, failed, refused = load_run(tmp_path / "run").records
    assert failed.status == "failed" and "HTTP 500: no" in failed.error
    assert refused.reply and refused.reply.status == "not_found" and not refused.reply.prediction
    assert first.reply and first.reply.marked == ("99 days",)
    assert first.reply.usage.cached_tokens == 16 and first.reply.hits
    asked = peer.asked[0]
    assert asked["stream"] and asked["temperature"] == 0 and asked["model"] == "m"
    said = asked["messages"][-1]["content"]
    assert "<contract>" in said and "The total price of the Goods is EUR 1,250.00" in said
    assert "Not in the document" in said
    written = "".join(p.read_text() for p in (tmp_path / "run").iterdir())
    assert peer.keys[0] == "Bearer secret-key"
    assert "secret-key" not in written and "u:pw" not in written


def test_the_whole_document_goes_to_a_peer_that_takes_it(
    run_set: Runner, question_set: Maker, tmp_path: Path
) -> None:
    too_long = Script([(0, b'{"error": {"code": "context_length_exceeded"}}')], 400)
    path = question_set(documents=1, filler=30)
    with serving(too_long) as peer:
        summary = run_set(
            "peer", path, wanted=Wanted(limit=1), endpoint=peer.endpoint, peer_model="m",
            switches=("context=whole",),
        )  # fmt: skip
    assert (summary["n"], summary["unfit"], summary["failed"]) == (1, 1, 0)
    text = json.loads(path.read_text())["text"]
    assert text in peer.asked[0]["messages"][-1]["content"]


def test_choices_are_answered_by_a_letter(run_set: Runner, tmp_path: Path) -> None:
    path = tmp_path / "choice.jsonl"
    qa = {
        "qid": "c", "question": "Who pays?", "choices": {"A": "the buyer", "B": "the seller"},
        "answer": "B", "answers": ["the seller"], "answer_starts": [-1], "is_impossible": False,
    }  # fmt: skip
    line = {"doc_id": "d", "title": "t", "lang": "en", "kind": "k", "text": "The seller pays.\n",
            "source": "s", "licence": "l", "qas": [qa]}  # fmt: skip
    path.write_text(json.dumps(line), encoding="utf-8")
    answer = Script([(0, words("(B) A seller", "stop")), (0, DONE)])
    with serving(answer) as peer:
        summary = run_set("peer", path, endpoint=peer.endpoint, peer_model="m")
    assert summary["choice_accuracy"] == 1.0
    assert "B. the seller" in peer.asked[0]["messages"][-1]["content"]
    (record,) = load_run(tmp_path / "run").records
    assert record.reply and record.reply.prediction == "the seller"


def test_nobody_there_is_found_before_the_run(
    run_set: Runner, question_set: Maker, tmp_path: Path
) -> None:
    with serving() as peer:
        gone = peer.endpoint
    for endpoint, told in ((gone, "Nobody answers"), ("ftp://x", "no URL")):
        with pytest.raises(PeerError, match=told):
            run_set("peer", question_set(), endpoint=endpoint, peer_model="m")
    with serving(models=401) as peer, pytest.raises(PeerError, match="--api-key-file"):
        run_set("peer", question_set(), endpoint=peer.endpoint, peer_model="m")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "endpoint", ["http://[::1/v1", "http://127.0.0.1:99999/v1", "http://a\0b/v1", "file:///x", "x"]
)
def test_an_endpoint_that_is_no_address_is_refused(endpoint: str) -> None:
    with pytest.raises(PeerError, match="is no URL"):
        PeerClient(endpoint, "m")


def test_half_a_surrogate_pair_of_a_peer_can_be_written() -> None:
    piece = (
        b'data: {"choices": [{"delta": {"content": "a\\ud83d"}, "finish_reason": "\\ud83d"}]}\n\n'
    )
    with asking(Script([(0, piece), (0, DONE)])) as client:
        completion = client.complete(MESSAGES, 8)
    assert (completion.text, completion.finish_reason) == ("a\ufffd", "\ufffd")
    refusal = Script([(0, b'{"error": {"message": "no \\ud83d"}}')], status=400)
    with asking(refusal) as client, pytest.raises(PeerError, match="HTTP 400: no \ufffd"):
        client.complete(MESSAGES, 8)


@pytest.mark.parametrize(
    ("part", "told"),
    [(b": ping\n\n", "not complete within"), (b"data: " + b"x" * 1_000_000, "a line over")],
)
def test_a_stream_that_goes_on_without_an_answer_ends(part: bytes, told: str) -> None:
    with asking(Script([(0.05, part)] * 400), timeout_s=1.0) as client:
        started = time.perf_counter()
        with pytest.raises(PeerError, match=told):
            client.complete(MESSAGES, 8)
        assert time.perf_counter() - started < 15
