"""The rule of CI for every test: nothing is skipped.

A test whose service is missing (the default model, a browser, PostgreSQL) skips itself and says
why. With CI=true that skip is a failure, so that CI cannot pass by not looking. Tests marked `gpu`
are the exception: CI has none.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from hypothesis import settings

# The same examples on every run, and no deadline: a slow machine is no fault of the code.
settings.register_profile("fineprint", derandomize=True, deadline=None)
settings.load_profile("fineprint")


def in_ci() -> bool:
    return os.environ.get("CI") == "true"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turns the skip of one test into a failure, where CI runs."""
    report = yield
    excused = hasattr(report, "wasxfail") or item.get_closest_marker("gpu") is not None
    if in_ci() and report.skipped and not excused:
        report.outcome = "failed"
        report.longrepr = f"skipped, but CI skips nothing: {reason(report.longrepr)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turns the skip of a whole module into a failure, where CI runs."""
    report = yield
    if in_ci() and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped, but CI skips nothing: {reason(report.longrepr)}"
    return report


def reason(longrepr: object) -> str:
    """What a skipped report says: pytest keeps (path, line, reason)."""
    return str(longrepr[2] if isinstance(longrepr, tuple) else longrepr)
