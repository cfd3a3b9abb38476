"""Reads a PDF by starting the worker process, watching it and turning its result into values.

Knows no PDF itself. The worker is killed when the time is up or the caller cancels.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

import retrieval
from retrieval.errors import (
    Damaged,
    Encrypted,
    NoTextLayer,
    ParseCancelled,
    ParseTimeout,
    TooLarge,
)
from retrieval.parse.limits import MIB, ParseLimits
from retrieval.parse.source import Source
from retrieval.types import Box, DocumentPage, DocumentWarning

_POLL_SECONDS = 0.1
_FULL = 65535
INSTALL_OCR = ".venv/bin/pip install -c constraints.txt -e '.[ocr]'"
"""In the project's folder: a bare pip would mostly be that of another Python."""
_REMEDIES = {
    "absent": "Install the optional text recognition (OCR), in Fineprint's folder: "
    f"{INSTALL_OCR}; then restart Fineprint and read the file again. Or recognise it with another "
    "program and upload the searchable PDF.",
    "off": "Run text recognition (OCR) on it and upload the searchable PDF.",
    "ready": "Text recognition (OCR) found no words in it either. Scan it again, straight and "
    "sharp.",
}
_RESAVE = "Open it in a PDF viewer, print or save it as a new PDF and upload that."


@dataclass(frozen=True, slots=True)
class PdfText:
    """What a PDF holds, in the shapes of retrieval.types.Document."""

    text: str
    pages: tuple[DocumentPage, ...]
    warnings: tuple[DocumentWarning, ...]
    char_boxes: dict[int, tuple[Box | None, ...]]
    source: Source


def read_pdf(
    path: Path,
    name: str,
    limits: ParseLimits,
    on_progress: Callable[[int, int], None] | None,
    cancelled: Callable[[], bool] | None,
) -> PdfText:
    """Text, pages, boxes and warnings of a PDF.

    Raises Encrypted, Damaged, NoTextLayer, TooLarge, ParseTimeout, ParseCancelled.
    """
    with tempfile.TemporaryDirectory(prefix="fineprint-pdf-") as folder:
        status = _run(path, name, Path(folder), limits, on_progress, cancelled)
        found = Path(folder) / "result.json"
        if status != 0 or not found.exists():
            raise Damaged(
                f"“{name}” can't be read: the PDF reader stopped on it ({_ending(status)}). "
                f"{_RESAVE}"
            )
        result = json.loads(found.read_text(encoding="utf-8"))
        if result["error"] is not None:
            _refuse(result["error"], result["detail"], name, limits)
        boxes = array("H")
        boxes.frombytes((Path(folder) / "boxes.bin").read_bytes())
    pages = tuple(
        DocumentPage(number=number, **page) for number, page in enumerate(result["pages"], 1)
    )
    source = Source(
        result["plain"],
        result["left_out"],
        tables=tuple(result["tables"]),
        garbled=tuple(result["garbled"]),
    )
    return PdfText(result["text"], pages, _warnings(result), _char_boxes(pages, boxes), source)


def _run(
    path: Path,
    name: str,
    folder: Path,
    limits: ParseLimits,
    on_progress: Callable[[int, int], None] | None,
    cancelled: Callable[[], bool] | None,
) -> int:
    """The worker's exit status; it is always gone when this returns or raises."""
    command = [
        sys.executable,
        "-m",
        "retrieval.parse.pdf_worker",
        str(path.resolve()),
        str(folder),
        json.dumps(asdict(limits)),
    ]
    deadline = time.monotonic() + limits.timeout_seconds
    # `-m` looks in the current folder first: that of the package makes the worker find this code.
    root = Path(retrieval.__file__).resolve().parent.parent
    process = subprocess.Popen(
        command,
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            pending = b""
            while True:
                if cancelled is not None and cancelled():
                    raise ParseCancelled(f"Reading “{name}” was cancelled.")
                if time.monotonic() > deadline:
                    raise ParseTimeout(
                        f"“{name}” took longer than {limits.timeout_seconds:.0f} s to read. Split "
                        "the PDF or raise the limit."
                    )
                if selector.select(_POLL_SECONDS):
                    piece = os.read(process.stdout.fileno(), 65536)
                    if not piece:
                        break
                    pending, extra = _report(pending + piece, on_progress)
                    deadline += extra * limits.ocr_page_seconds
        return process.wait(timeout=max(1.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        raise ParseTimeout(f"“{name}”: the PDF reader did not end in time.") from error
    finally:
        _end(process)


def _report(lines: bytes, on_progress: Callable[[int, int], None] | None) -> tuple[bytes, int]:
    """Tells the newest "done total" line; returns the unfinished rest, and how many pages an
    "ocr n" line among them announces."""
    whole, newline, rest = lines.rpartition(b"\n")
    announced = 0
    last: tuple[int, int] | None = None
    for line in whole.split(b"\n") if newline else ():
        first, _, second = line.partition(b" ")
        if first == b"ocr":
            announced += int(second)
        else:
            last = int(first), int(second)
    if last is not None and on_progress is not None:
        on_progress(*last)
    return rest, announced


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    stream: IO[bytes] | None = process.stdout
    if stream is not None:
        stream.close()


def _ending(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def _refuse(error: str, detail: str, name: str, limits: ParseLimits) -> NoReturn:
    match error:
        case "encrypted":
            raise Encrypted(
                f"“{name}” needs a password to be opened. Save it without a password and upload "
                "that."
            )
        case "no_text_layer_absent" | "no_text_layer_off" | "no_text_layer_ready":
            raise NoTextLayer(
                f"“{name}” has no text: its {detail} page(s) are pictures. "
                + _REMEDIES[error.rpartition("_")[2]]
            )
        case "unreadable_absent" | "unreadable_off" | "unreadable_ready":
            raise NoTextLayer(
                f"“{name}” can't be read as text: its fonts don't say which characters they show. "
                + _REMEDIES[error.rpartition("_")[2]]
            )
        case "too_many_pages":
            raise TooLarge(
                f"“{name}” has {detail} pages; at most {limits.max_pages} are read. Split it."
            )
        case "memory":
            raise TooLarge(
                f"“{name}” needs more than {limits.memory_bytes // MIB} MiB of memory to be read. "
                f"{_RESAVE}"
            )
        case "no_pages":
            raise Damaged(f"“{name}” has no pages. Export the PDF again.")
    raise Damaged(f"“{name}” is not a readable PDF ({detail.rstrip('.')}). {_RESAVE}")


def _warnings(result: dict[str, Any]) -> tuple[DocumentWarning, ...]:
    found: list[DocumentWarning] = []
    advice = " " + _REMEDIES["absent"] if result["ocr"] == "absent" else ""
    for key, code, message in (
        (
            "without_text",
            "pages_without_text",
            "No text could be read on page(s) {pages}: they hold pictures only. Answers don't "
            "cover them." + advice,
        ),
        (
            "unreadable",
            "unreadable_pages",
            "The text of page(s) {pages} can't be decoded and was left out. Answers don't cover "
            "them." + advice,
        ),
        (
            "partly_unreadable",
            "partly_unreadable_pages",
            "Some characters on page(s) {pages} can't be decoded and show as “�”.",
        ),
        (
            "hidden",
            "hidden_text",
            "Text that a reader can't see was left out on page(s) {pages}.",
        ),
        (
            "recognised",
            "recognised_pages",
            "The text of page(s) {pages} was recognised in their pictures (OCR) and may hold "
            "errors. Compare figures with the original.",
        ),
        (
            "ocr_failed",
            "recognition_failed",
            "Text recognition (OCR) failed on page(s) {pages}. Answers don't cover them.",
        ),
        (
            "ocr_over_limit",
            "recognition_limit",
            "Text recognition (OCR) stopped before page(s) {pages}: the file has more pictures of "
            "text than the limit. Split it.",
        ),
    ):
        pages = tuple(result[key])
        if pages:
            found.append(DocumentWarning(code, message.format(pages=page_ranges(pages)), pages))
    return tuple(found)


def page_ranges(pages: Sequence[int]) -> str:
    """1, 2, 3, 7 as "1–3, 7"."""
    ranges: list[list[int]] = []
    for page in pages:
        if ranges and page == ranges[-1][1] + 1:
            ranges[-1][1] = page
        else:
            ranges.append([page, page])
    return ", ".join(f"{a}" if a == b else f"{a}–{b}" for a, b in ranges)


def _char_boxes(
    pages: Sequence[DocumentPage], flat: array[int]
) -> dict[int, tuple[Box | None, ...]]:
    # A long contract has a million characters; sharing the floats halves what its boxes take.
    fractions = [step / _FULL for step in range(_FULL + 1)]
    boxes: dict[int, tuple[Box | None, ...]] = {}
    for page in pages:
        sides = iter(flat[page.start * 4 : page.end * 4])
        boxes[page.number] = tuple(
            None if x0 > x1 else (fractions[x0], fractions[y0], fractions[x1], fractions[y1])
            for x0, y0, x1, y1 in zip(sides, sides, sides, sides, strict=True)
        )
    return boxes
