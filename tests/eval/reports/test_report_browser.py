"""The report in a real browser: nothing is fetched, nothing runs, nothing overflows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


# Not for longer: while Playwright's synchronous interface is open, no later test could start an
# event loop in this thread.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium. Skips with the reason when there is none."""
    playwright = pytest.importorskip("playwright.sync_api")
    names = ("chromium", "chromium-browser", "google-chrome")
    executable = next((path for name in names if (path := shutil.which(name))), None)
    if executable is None:
        pytest.skip("no Chromium on the PATH; on Debian: apt-get install chromium fonts-noto-cjk")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=executable, args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture
def file(hostile_page: str, tmp_path: Path) -> Path:
    """The page as a file."""
    path = tmp_path / "report.html"
    path.write_text(hostile_page, encoding="utf-8")
    return path


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_the_page_is_quiet_and_fits(
    browser: Any, file: Path, evil: str, width: int, scheme: str
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
    )
    page = context.new_page()
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append(f"dialog {dialog.message}"))
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith(("file:", "data:")) else faults.append(request.url)
        ),
    )
    page.goto(file.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    page.wait_for_timeout(200)
    assert faults == []
    assert page.title() == f"Title {evil}"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.scripts.length") == 0
    charts = page.locator("figure svg")
    assert charts.count() > 8
    for chart in charts.all():
        box = chart.bounding_box()
        assert box is not None and box["x"] > 0 and box["x"] + box["width"] <= width
        assert box["height"] > 150
    _inked(page, scheme)
    context.close()


def _inked(page: Any, scheme: str) -> None:
    """Text of page and charts is dark on light, or light on dark."""
    colours = page.evaluate(
        """() => [
            getComputedStyle(document.querySelector('figure svg text')).fill,
            getComputedStyle(document.body).color,
            getComputedStyle(document.body).backgroundColor,
        ].map(colour => colour.match(/\\d+/g).slice(0, 3).reduce((sum, one) => sum + +one, 0))"""
    )
    chart, ink, ground = colours
    if scheme == "light":
        assert chart < 300 and ink < 300 and ground > 600
    else:
        assert chart > 450 and ink > 450 and ground < 200
