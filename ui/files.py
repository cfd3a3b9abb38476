"""The names of uploaded files. Gradio stores what the browser sends under a changed name; the
browser tells the files' own names beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

NAMES_OF_FILES = "(files, names, ...rest) => [files, files.map((one) => one.orig_name), ...rest]"
"""Runs in the browser before an upload's handler: fills in the second input."""


def named_files(paths: Sequence[str], names: object) -> list[tuple[Path, str]]:
    """Where each file lies and what it is called. The names are for display only; where the
    browser told none, the stored ones stand in."""
    told = names if isinstance(names, list) and len(names) == len(paths) else [None] * len(paths)
    return [
        (Path(path), name if isinstance(name, str) and name else Path(path).name)
        for path, name in zip(paths, told, strict=True)
    ]
