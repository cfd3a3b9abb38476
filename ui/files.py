"""The upload box. Gradio stores what the browser sends under a changed name; this box hands on the
file's own name beside the place where it was stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

Received = tuple[Path, str]
"""Where the file lies, and what it is called."""


def contract_files(label: str, **options: Any) -> gr.File:
    """A box for several files at once, by click or drag and drop. Handlers get `list[Received]`."""
    box = gr.File(file_count="multiple", label=label, **options)
    # No subclass: Gradio writes a .pyi beside the source of every subclass of a component.
    box.preprocess = _received  # type: ignore[method-assign, assignment]
    return box


def _received(payload: Any) -> list[Received]:
    if payload is None:
        return []
    return [(Path(one.path), one.orig_name or Path(one.path).name) for one in payload]
