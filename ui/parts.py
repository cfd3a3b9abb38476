"""The components of the page, by what they are for. Holds no behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Changes = dict[Any, Any]
"""Components and what becomes of them; the others stay as they are."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The components that handlers read and write. The last five belong to one browser session."""

    lang: Any
    brand: Any
    library_title: Any
    talk_title: Any
    page_title: Any
    upload: Any
    names: Any
    upload_hint: Any
    sample: Any
    notices: Any
    library: Any
    talk: Any
    suggestions: Any
    status: Any
    question: Any
    ask: Any
    stop: Any
    viewer: Any
    chosen: Any
    said: Any
    running: Any
    shown: Any
    seen: Any
