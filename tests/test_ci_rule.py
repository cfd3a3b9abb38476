"""In CI a skip is a failure; elsewhere it stays a skip with its reason."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RULE = Path(__file__).resolve().parents[1] / "conftest.py"
ONE_TEST = """
import pytest

@pytest.mark.{marker}
def test_needs_a_service():
    pytest.skip("no server here")
"""
WHOLE_MODULE = """
import pytest

pytest.importorskip("a_package_that_is_not_there")

def test_needs_a_package():
    pass
"""
EXPECTED_FAILURE = """
import pytest

@pytest.mark.xfail(reason="known", strict=True)
def test_known_fault():
    assert False
"""


def run(folder: Path, source: str, ci: str) -> tuple[int, str]:
    (folder / "conftest.py").write_text(RULE.read_text("utf-8"), "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    gpu\n    postgres\n", "utf-8")
    (folder / "test_one.py").write_text(source, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-ra", "-p", "no:cacheprovider", str(folder)],
        cwd=folder,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("source", "ci", "passes"),
    [
        (ONE_TEST.format(marker="postgres"), "true", False),
        (ONE_TEST.format(marker="postgres"), "", True),
        (ONE_TEST.format(marker="gpu"), "true", True),
        (WHOLE_MODULE, "true", False),
        (EXPECTED_FAILURE, "true", True),
    ],
)
def test_skips(tmp_path: Path, source: str, ci: str, passes: bool) -> None:
    code, output = run(tmp_path, source, ci)
    assert (code == 0) is passes, output
    if not passes:
        assert "CI skips nothing" in output


def test_the_reason_is_shown(tmp_path: Path) -> None:
    _, output = run(tmp_path, ONE_TEST.format(marker="postgres"), "true")
    assert "no server here" in output
