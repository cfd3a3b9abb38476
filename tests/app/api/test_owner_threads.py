"""Threads of slow work are shared out: an owner's own never take them all."""

from __future__ import annotations

import threading
from functools import partial

import anyio
import pytest

from app.api.owner_threads import OwnerThreads


def test_an_owner_leaves_a_thread_to_others() -> None:
    threads = OwnerThreads(2, 1)
    go, began = threading.Event(), threading.Semaphore(0)
    ended: list[str] = []

    def slow(name: str) -> None:
        began.release()
        assert go.wait(60)
        ended.append(name)

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(threads.run, "a", partial(slow, f"a{number}"))
            await anyio.to_thread.run_sync(began.acquire)
            # Four of a's wait for each other, and b's is done meanwhile.
            await threads.run("b", partial(ended.append, "b"))
            assert ended == ["b"] and not began.acquire(blocking=False)
            go.set()

    anyio.run(run)
    assert ended == ["b", "a0", "a1", "a2", "a3", "a4"]


def test_one_owner_alone_has_as_many_as_each_may() -> None:
    threads = OwnerThreads(2, 2)
    together = threading.Barrier(2, timeout=60)

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(threads.run, "a", together.wait)
            tasks.start_soon(threads.run, "a", together.wait)

    anyio.run(run)


def test_owners_who_have_gone_are_forgotten_and_errors_give_their_thread_back() -> None:
    threads = OwnerThreads(2, 1)

    def fail() -> None:
        raise ValueError("wrong")

    async def run() -> None:
        for number in range(10):
            with pytest.raises(ValueError, match="wrong"):
                await threads.run(f"owner {number}", fail)
        assert await threads.run("owner 3", lambda: 7) == 7

    anyio.run(run)
    assert len(threads._of) == 1
