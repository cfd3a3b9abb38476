"""The page where keys are required: sign in, see the own documents alone, sign out."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.api_keys import ApiKeys
from app.db.session import Database

pytestmark = pytest.mark.browser

CONTRACT = "1. Term\nThe term is two years.\n\n2. Price\nThe price is EUR 1,250,000.00.\n"


@pytest.fixture
def server(
    serve_process: Callable[..., AbstractContextManager[str]], tmp_path: Path
) -> Iterator[tuple[str, Path]]:
    """The address of a server that asks for keys, and its data folder."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    script = str(Path(__file__).with_name("scripted_server.py"))
    command = [sys.executable, script, str(port), str(tmp_path / "data"), "keys"]
    with serve_process(command, port, tmp_path / "log") as url:
        yield url, tmp_path / "data"


@pytest.fixture
def make_key(server: tuple[str, Path]) -> Callable[[str], str]:
    def made(owner: str) -> str:
        database = Database(f"sqlite:///{server[1] / 'fineprint.sqlite'}")
        try:
            return ApiKeys(database).create(owner)[1]
        finally:
            database.close()

    return made


@pytest.fixture
def visit(browser: Any, server: tuple[str, Path]) -> Iterator[Callable[[], Any]]:
    """A page of a fresh browser profile, sent to the door."""
    contexts = []

    def opened() -> Any:
        contexts.append(browser.new_context(locale="en-GB"))
        page = contexts[-1].new_page()
        page.set_default_timeout(60_000)
        page.goto(server[0])
        page.wait_for_url("**/login")
        return page

    yield opened
    for context in contexts:
        context.close()


def sign_in(page: Any, key: str) -> None:
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Sign in").click()


def test_each_signs_in_and_sees_the_own_documents(
    server: tuple[str, Path], make_key: Callable[[str], str], visit: Callable[[], Any]
) -> None:
    key = make_key("Alice")
    alice = visit()
    sign_in(alice, "fp_wrong")
    alice.get_by_text("unknown, expired or revoked").wait_for()
    sign_in(alice, key)
    alice.wait_for_selector("#fp-brand h1")
    name = "alices-contract.txt"
    file = {"name": name, "mimeType": "text/plain", "buffer": CONTRACT.encode()}
    alice.set_input_files("#fp-upload input[type=file]", [file])
    row = alice.locator(".fp-doc").filter(has_text=name)
    row.get_by_text(re.compile("Ready|ask already")).wait_for()
    alice.get_by_role("button", name=re.compile(name)).first.click()
    alice.locator("#fp-question textarea").fill("What is the price?")
    alice.locator("#fp-question textarea").press("Enter")
    alice.locator(".fp-exchange").get_by_text("1,250,000.00").first.wait_for()

    bob = visit()
    sign_in(bob, make_key("Bob"))
    bob.wait_for_selector("#fp-brand h1")
    bob.locator("#fp-sample").wait_for()
    assert bob.get_by_text(name).count() == 0

    headers = {"Authorization": f"Bearer {key}"}
    listed = httpx.get(f"{server[0]}/api/v1/documents", headers=headers, trust_env=False).json()
    assert [one["name"] for one in listed["data"]] == [name]
    assert alice.evaluate("document.cookie") == "", "no script can read the key"
    alice.get_by_role("link", name="Sign out").click()
    alice.wait_for_url("**/login")
    alice.goto(server[0])
    alice.wait_for_url("**/login")
