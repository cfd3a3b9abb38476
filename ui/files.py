"""The upload box. Gradio stores what the browser sends under a changed name; this component hands
on the file's own name beside the place where it was stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

Received = tuple[Path, str]
"""Where the file lies, and what it is called."""


class ContractFiles(gr.File):
    """Several files at once, by click or drag and drop."""

    def preprocess(self, payload: Any) -> list[Received]:  # type: ignore[override]
        """The files with their own names. The names are for display only."""
        if payload is None:
            return []
        return [(Path(one.path), one.orig_name or Path(one.path).name) for one in payload]

    def get_block_name(self) -> str:
        """The page draws it as a plain file box."""
        return "file"
