"""The components of the page, by what they are for. Holds no behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Changes = dict[Any, Any]
"""Components and what becomes of them; the others stay as they are."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The components that handlers read and write. The last six belong to one browser session."""

    lang: Any
    brand: Any
    library_title: Any
    view: Any
    talk_group: Any
    terms_group: Any
    compare_group: Any
    terms: Any
    old_version: Any
    new_version: Any
    compare: Any
    comparison: Any
    page_title: Any
    upload: Any
    names: Any
    upload_hint: Any
    sample: Any
    notices: Any
    library: Any
    earlier: Any
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
    examined: Any
    reopened: Any
