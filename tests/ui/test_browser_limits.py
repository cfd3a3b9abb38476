"""What the page does with files over the limit, in a real browser."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

SCRIPT = Path(__file__).with_name("scripted_server.py")


def test_a_file_over_the_limit_keeps_no_other_of_the_same_drop_out(
    serve_process: Any,
    unused_port: int,
    tmp_path: Path,
    open_page: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FINEPRINT_MAX_UPLOAD_MB", "1")
    command = [sys.executable, str(SCRIPT), str(unused_port), str(tmp_path / "data")]
    files = [
        {"name": "big.txt", "mimeType": "text/plain", "buffer": b"x" * 2_000_000},
        {"name": "small.txt", "mimeType": "text/plain", "buffer": b"1. Rent\n1.1 EUR 5."},
    ]
    with serve_process(command, unused_port, tmp_path / "log") as url:
        page = open_page(url)
        page.set_input_files("#fp-upload input[type=file]", files)
        page.locator(".fp-doc").filter(has_text="small.txt").wait_for()
        page.locator(".fp-notices .fp-bad").filter(has_text="big.txt").wait_for()
        assert page.locator(".fp-doc").count() == 1
