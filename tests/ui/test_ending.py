"""How a process leaves that was asked to end before it served anything."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ui.ending import Ending

LEAVING = """
import atexit, signal
from ui.ending import Ending
atexit.register(print, "libraries are taken apart")
ending = Ending()
with ending.finally_leaving():
    try:
        ending.leave(signal.SIGTERM, None)
    finally:
        print("closed")
"""


def test_blocks_are_closed_and_the_process_ends_there() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEAVING], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (143, "closed\n", "")


def test_what_nobody_asked_for_goes_its_usual_way() -> None:
    with pytest.raises(SystemExit, match="3"), Ending().finally_leaving():
        raise SystemExit(3)
    with pytest.raises(ValueError, match="wrong"), Ending().finally_leaving():
        raise ValueError("wrong")
