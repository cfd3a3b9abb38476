"""The whole product once: `fineprint serve` with the default model, seen through a browser."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.model]

READING_MS = 240_000
"""Two cores read the sample in 10 s; a busy machine may take long."""


@pytest.fixture
def model_server(
    default_model: Path,
    tmp_path: Path,
    serve_process: Callable[..., AbstractContextManager[str]],
) -> Iterator[str]:
    """Address of the real server with both samples taken in."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    program = str(Path(sys.executable).with_name("fineprint"))
    command = [program, "serve", "--port", str(port), "--data-dir", str(tmp_path / "data")]
    command += ["--model", str(default_model), "--sample"]
    with serve_process(command, port, tmp_path / "log") as url:
        yield url


def test_ask_the_sample_with_the_default_model(
    model_server: str, open_page: Callable[..., Any]
) -> None:
    page = open_page(model_server)
    name = "supply-agreement.en.pdf"
    row = page.locator(".fp-doc").filter(has_text=name)
    row.get_by_text(re.compile("Ready · 32 pages")).wait_for(timeout=READING_MS)
    row.get_by_role("button", name=f"Ask about {name}").click()
    page.locator(".fp-doc-selected").filter(has_text=name).wait_for()

    suggestion = page.locator(".fp-suggestion").first
    words = suggestion.inner_text()
    suggestion.click()
    # It comes back by way of the server; an empty question would not be asked.
    box = "document.querySelector('#fp-question textarea')"
    page.wait_for_function(f"words => {box}.value === words", arg=words)
    page.get_by_role("button", name="Ask", exact=True).click()
    card = page.locator(".fp-exchange")
    card.locator(".fp-quote").wait_for(timeout=READING_MS)
    card.locator("[aria-busy]").wait_for(state="detached", timeout=READING_MS)
    assert "42 days" in card.inner_text()
    assert "(100%)" in card.locator(".fp-meta").inner_text()
    card.locator(".fp-chip").first.click()
    picture = page.locator("img.fp-page")
    picture.wait_for()
    assert picture.evaluate("image => image.naturalWidth") > 500
    assert page.foreign == [] and page.faults == []
