"""A remote engine over scripted servers: order, failover, limits, cancelling, what is sent."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from app.remote.engine import RemoteEngine
from app.remote.line import Line
from app.remote.servers import IDLE_S, LONGEST_PAUSE_S, Servers
from app.remote.stream import RemoteStream
from backend.errors import (
    BackendError,
    EngineBusy,
    EngineClosed,
    InvalidSampling,
    WindowExceeded,
)
from backend.types import DocumentTokens, Request, SamplingParams

MESSAGES = (("system", "Be brief."), ("user", "<contract>The cap is USD 5.</contract> Cap?"))
Start = Callable[[], Any]


class Words:
    """As much of a tokenizer as the engine looks at."""

    vocab_size = 100


def engine_over(*urls: str, timeout_s: float = 5.0) -> RemoteEngine:
    servers = Servers(urls, "big", timeout_s=timeout_s)
    return RemoteEngine(servers, Words(), "words", context_tokens=8192)  # type: ignore[arg-type]


def asked(name: str = "r1", **sampling: Any) -> Request:
    return Request(name, (1, 2), SamplingParams(max_tokens=50, **sampling), messages=MESSAGES)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.remote.stream.random.uniform", lambda low, high: 0.01)


@pytest.fixture
def opened() -> Iterator[Callable[..., RemoteEngine]]:
    engines: list[RemoteEngine] = []

    def build(*urls: str, timeout_s: float = 5.0) -> RemoteEngine:
        engines.append(engine_over(*urls, timeout_s=timeout_s))
        return engines[-1]

    yield build
    for engine in engines:
        engine.close()


def test_words_come_as_events_with_the_account_in_the_last(
    model_server: Start, opened: Callable[..., RemoteEngine]
) -> None:
    server = model_server()
    events = list(opened(server.url).generate(asked(seed=7, stop=("</contract",))))
    assert "".join(event.text for event in events) == "The cap is USD 5."
    last = events[-1]
    assert last.finish_reason == "stop"
    assert last.usage is not None and last.timings is not None
    assert (last.usage.prompt_tokens, last.usage.cached_tokens) == (30, 16)
    assert last.usage.completion_tokens == 3
    assert last.timings.ttft_ms > 0
    sent = server.bodies[0]
    assert sent["messages"][1]["content"] == MESSAGES[1][1]
    assert (sent["model"], sent["seed"], sent["max_tokens"]) == ("big", 7, 50)
    assert sent["stop"] == ["</contract"] and sent["temperature"] == 0.0


def test_another_server_takes_over_before_the_first_word(
    model_server: Start, opened: Callable[..., RemoteEngine]
) -> None:
    broken, well = model_server(), model_server()
    broken.statuses = [(500, {}, "out of memory")]
    engine = opened(broken.url, well.url)
    text = "".join(event.text for event in engine.generate(asked()))
    assert text == "The cap is USD 5."
    assert len(broken.bodies) == 1 and len(well.bodies) == 1
    # The one that failed is left alone for now.
    list(engine.generate(asked("r2")))
    assert len(broken.bodies) == 1 and len(well.bodies) == 2
    assert engine.alive


def test_a_dead_server_alone_is_said_with_its_address(
    opened: Callable[..., RemoteEngine],
) -> None:
    engine = opened("http://127.0.0.1:9/v1")
    with pytest.raises(BackendError, match=r"No model server answers.*127\.0\.0\.1:9"):
        list(engine.generate(asked()))
    assert not engine.alive and "127.0.0.1:9" in engine.problem


def test_half_an_answer_ends_with_an_error_and_is_not_begun_again(
    model_server: Start, opened: Callable[..., RemoteEngine]
) -> None:
    first, second = model_server(), model_server()
    first.break_after = 2
    stream = opened(first.url, second.url).generate(asked())
    said = ""
    with pytest.raises(BackendError, match="broke off"):
        for event in stream:
            said += event.text
    assert said == "The cap is "
    assert not second.bodies


def test_servers_at_their_limit_are_waited_for_and_then_said(
    model_server: Start, opened: Callable[..., RemoteEngine]
) -> None:
    server = model_server()
    server.statuses = [(429, {"retry-after": "0.2"}, "slow down")]
    started = time.monotonic()
    engine = opened(server.url)
    assert list(engine.generate(asked()))[-1].finish_reason == "stop"
    assert time.monotonic() - started >= 0.2
    server.statuses = [(429, {}, "slow down")] * 3
    with pytest.raises(EngineBusy, match="slow down"):
        list(engine.generate(asked("r2")))
    assert engine.alive, "a busy server is not a dead one"


def test_what_the_server_refuses_is_not_tried_elsewhere(
    model_server: Start, opened: Callable[..., RemoteEngine]
) -> None:
    first, second = model_server(), model_server()
    first.statuses = [(400, {}, "This model's maximum context length is 4096 tokens")]
    with pytest.raises(WindowExceeded, match="REMOTE_EVIDENCE_TOKENS"):
        list(opened(first.url, second.url).generate(asked()))
    assert not second.bodies
    first.statuses = [(400, {}, "unknown parameter")]
    with pytest.raises(BackendError, match="unknown parameter"):
        list(opened(first.url).generate(asked()))


def test_cancelling_leaves_the_server_at_once(
    model_server: Start, opened: Callable[..., RemoteEngine]
) -> None:
    server = model_server()
    server.words, server.pace = ["word "] * 400, 0.02
    engine = opened(server.url)
    stream = engine.generate(asked())
    threading.Timer(0.2, engine.cancel, ("r1",)).start()
    started = time.monotonic()
    events = list(stream)
    assert time.monotonic() - started < 2
    assert events[-1].finish_reason == "cancelled"
    usage, timings = events[-1].usage, events[-1].timings
    assert usage is not None and usage.completion_tokens == len(events) - 1
    assert timings is not None and timings.ttft_ms + timings.decode_ms > 0
    assert server.left.wait(3), "the server still writes"
    engine.cancel("r1")


@pytest.mark.parametrize(("thinks", "pace"), [(3.0, 0.0), (0.0, 3.0)], ids=["no byte", "no word"])
def test_cancelling_does_not_wait_for_a_server_that_has_not_begun(
    model_server: Start, opened: Callable[..., RemoteEngine], thinks: float, pace: float
) -> None:
    server = model_server()
    server.thinks, server.pace = thinks, pace
    engine = opened(server.url)
    stream = engine.generate(asked())
    threading.Timer(0.3, engine.cancel, ("r1",)).start()
    started = time.monotonic()
    assert [event.finish_reason for event in stream] == ["cancelled"]
    assert time.monotonic() - started < 2.7
    while any(thread.name == "remote" for thread in threading.enumerate()):
        assert time.monotonic() - started < 10
        time.sleep(0.05)
    assert engine.alive, "a server that was left has done nothing wrong"


def test_a_server_that_has_not_begun_is_left_at_once(
    model_server: Start, opened: Callable[..., RemoteEngine]
) -> None:
    server = model_server()
    server.thinks = 120.0
    engine = opened(server.url, timeout_s=120.0)
    stream = engine.generate(asked())
    # By itself the client would leave after two minutes.
    threading.Timer(0.3, engine.cancel, ("r1",)).start()
    assert [event.finish_reason for event in stream] == ["cancelled"]
    assert server.left.wait(20), "the connection is still open"
    assert engine.alive


def test_a_line_that_was_cut_cuts_what_is_opened_later() -> None:
    near, far = socket.socketpair()
    line = Line()
    line.cut()
    with near, far:
        opened = SimpleNamespace(get_extra_info={"socket": near}.get)
        line.trace("connection.connect_tcp.complete", {"return_value": opened})
        assert far.recv(1) == b""


def test_a_server_that_never_ends_is_left(
    model_server: Start, opened: Callable[..., RemoteEngine]
) -> None:
    server = model_server()
    server.words = ["word " * 100] * 100_000
    with pytest.raises(BackendError, match="beyond max_tokens"):
        list(opened(server.url).generate(asked()))
    assert server.left.wait(3)


def test_closing_a_stream_early_leaves_the_server(
    model_server: Start, opened: Callable[..., RemoteEngine]
) -> None:
    server = model_server()
    server.words, server.pace = ["word "] * 400, 0.02
    stream = opened(server.url).generate(asked())
    next(stream)
    stream.close()
    assert server.left.wait(3)
    with pytest.raises(StopIteration):
        next(stream)


def test_what_cannot_be_sent_is_refused_before_anything_is(
    model_server: Start, opened: Callable[..., RemoteEngine]
) -> None:
    server = model_server()
    engine = opened(server.url)
    for sampling in ({"logprobs": 2}, {"top_k": 5}, {"min_tokens": 3}, {"stop": tuple("abcde")}):
        with pytest.raises(InvalidSampling):
            engine.generate(asked(**sampling))
    with pytest.raises(BackendError, match="chat messages"):
        engine.generate(Request("r9", (1, 2)))
    engine.close()
    with pytest.raises(EngineClosed):
        engine.generate(asked())
    assert not server.bodies


def test_a_server_without_the_model_is_found_by_the_check(
    model_server: Start, opened: Callable[..., RemoteEngine]
) -> None:
    right, wrong = model_server(), model_server()
    wrong.models = ["small"]
    engine = opened(right.url, wrong.url)
    [problem] = engine.check()
    assert wrong.url in problem and "small, not big" in problem
    assert engine.alive
    right.models = ["small"]
    assert len(engine.check()) == 2
    assert not engine.alive


def test_a_failing_server_is_left_alone_longer_each_time() -> None:
    now = [0.0]
    servers = Servers(["http://127.0.0.1:9/v1", "http://127.0.0.1:10/v1"], "big",
                      clock=lambda: now[0])  # fmt: skip
    bad, good = servers.in_order()
    pauses = []
    for _ in range(8):
        servers.failed(bad, "refused")
        pauses.append(bad.down_until - now[0])
        assert servers.in_order()[0] is good
        now[0] = bad.down_until
    assert pauses[0] < pauses[1] < pauses[2] and max(pauses) == LONGEST_PAUSE_S
    with servers.busy(good):
        assert servers.in_order()[0] is bad
    servers.well(bad)
    assert bad.failures == 0
    servers.close()


def test_requests_that_meet_one_outage_count_it_once() -> None:
    now = [100.0]
    servers = Servers(["http://127.0.0.1:9/v1"], "big", clock=lambda: now[0])
    (server,) = servers.in_order()
    for _ in range(8):
        servers.failed(server, "refused", asked_at=99.0)
        now[0] += 0.1
    assert server.failures == 1 and server.down_until == 102.0
    now[0] = 200.0
    servers.failed(server, "timed out", asked_at=99.5)
    assert server.failures == 1, "it was asked before the failure that counts"
    servers.failed(server, "refused", asked_at=199.0)
    assert server.failures == 2 and server.down_until == 204.0
    servers.close()


def test_a_server_that_says_when_it_will_be_back_is_waited_for(
    model_server: Start, opened: Callable[..., RemoteEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = model_server()
    server.statuses = [(503, {"retry-after": "0.4"}, "loading the model")]
    started = time.monotonic()
    assert list(opened(server.url).generate(asked()))[-1].finish_reason == "stop"
    assert time.monotonic() - started >= 0.4

    # Others leave it alone for as long.
    now = [100.0]
    servers = Servers([server.url], "big", clock=lambda: now[0])
    server.statuses = [(503, {"retry-after": "9"}, "loading the model")] * 3
    stream = RemoteStream(servers, asked())
    monkeypatch.setattr(stream._cancelled, "wait", lambda _: False)
    with pytest.raises(BackendError, match="loading the model"):
        list(stream)
    (known,) = servers.in_order()
    assert (known.failures, known.down_until) == (1, 109.0)
    servers.close()


def test_an_outage_lasts_until_a_server_answers(model_server: Start) -> None:
    now = [100.0]
    server, other = model_server(), model_server()
    servers = Servers([server.url, other.url], "big", clock=lambda: now[0])
    assert servers.check() == [] and servers.problem == ""
    server.gone = other.gone = True
    servers.look()
    assert servers.problem == "", "they were heard from just now"
    now[0] += IDLE_S
    servers.look()
    assert "gone" in servers.problem and server.url in servers.problem
    now[0] += 3600.0
    assert "gone" in servers.problem, "the pause is over, the outage is not"
    servers.look()
    assert "gone" in servers.problem
    other.gone = False
    servers.look()
    assert servers.problem == ""
    servers.close()


def test_a_thread_sees_that_servers_are_gone_and_back(
    model_server: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.remote.servers.LOOK_S", 0.02)
    monkeypatch.setattr("app.remote.servers.IDLE_S", 0.02)
    server = model_server()
    servers = Servers([server.url], "big")
    servers.watch()
    for gone in (True, False, True):
        server.gone = gone
        end = time.monotonic() + 30
        while bool(servers.problem) is not gone:
            assert time.monotonic() < end
            time.sleep(0.01)
    watcher = servers._watcher
    servers.close()
    assert watcher is not None and not watcher.is_alive()


def test_a_name_that_a_server_does_not_list_but_takes_is_no_fault(
    model_server: Start,
) -> None:
    now = [100.0]
    server = model_server()
    server.models = ["/models/big.gguf"]
    servers = Servers([server.url], "big", clock=lambda: now[0])
    assert servers.check()
    list(RemoteStream(servers, asked()))
    now[0] += IDLE_S
    servers.look()
    assert servers.problem == ""
    servers.close()


def test_documents_count_as_read_and_are_forgotten(opened: Callable[..., RemoteEngine]) -> None:
    engine = opened("http://127.0.0.1:9/v1")
    blocks = engine.split_blocks(10_000)
    assert blocks[0][0] == 0 and blocks[-1][1] == 10_000
    document = DocumentTokens("key", tuple(range(10_000)), blocks)
    assert engine.progress("key") is None
    assert engine.read(document).wait().status == "done"
    known = engine.progress("key")
    assert known is not None and (known.read_tokens, known.computed_tokens) == (10_000, 0)
    engine.forget("key")
    assert engine.progress("key") is None


def test_a_stream_dropped_before_it_began_asks_nobody(model_server: Start) -> None:
    server = model_server()
    servers = Servers([server.url], "big")
    RemoteStream(servers, asked()).close()
    assert not server.bodies
    servers.close()
