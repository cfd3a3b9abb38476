"""One stretch of a list, as every list of the REST API returns it. Does not know what it lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

T = TypeVar("T")
Order = Literal["asc", "desc"]
"""By time of creation."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """`data` in the asked order; `has_more`: entries follow the last one; `total` of all."""

    data: tuple[T, ...]
    has_more: bool
    total: int
