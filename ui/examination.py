"""What one session looked at besides questions: the key terms of a document, a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ui.client import Json

View = Literal["talk", "terms", "compare"]
VIEWS: tuple[View, ...] = ("talk", "terms", "compare")


@dataclass(frozen=True, slots=True)
class Examined:
    """The API's last key terms and comparison, None before the first."""

    terms: Json | None = None
    comparison: Json | None = None
