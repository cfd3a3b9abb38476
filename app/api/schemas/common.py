"""Shapes shared by all resources: lists, warnings, problems. Knows no resource."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from app.errors import BadParameter, BadRequest

MOST_FIELDS = 100
"""Of one object. A body may have a hundred thousand unknown ones: to list them all as faults takes
seconds, in which the event loop does nothing else."""


def _no_truth_value(value: Any) -> Any:
    # In Python True is a 1; in JSON they are different things.
    if isinstance(value, bool):
        raise ValueError("give a number, not true or false")
    return value


Whole = Annotated[int, BeforeValidator(_no_truth_value)]
"""A whole number of a body."""
Number = Annotated[float, BeforeValidator(_no_truth_value)]
"""A number of a body."""


def of_few_fields(value: Any, refusal: type[BadRequest], code: str) -> Any:
    """The value of a body, unless it is an object of more than `MOST_FIELDS` fields."""
    if isinstance(value, dict) and len(value) > MOST_FIELDS:
        raise refusal(
            f"The request holds an object with {len(value):,} fields; the limit is {MOST_FIELDS}.",
            code=code,
        )
    return value


class Body(BaseModel):
    """Base of every body that is taken; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: Any) -> Any:
        return of_few_fields(value, BadParameter, "invalid_request")


class Public(BaseModel):
    """Base of everything that is sent; readable from a dataclass of the same fields."""

    model_config = ConfigDict(from_attributes=True)


class Entity(Public):
    """Something with an id, so that it can stand in a list."""

    id: str


Entry = TypeVar("Entry", bound=Entity)


class ListPublic(Public, Generic[Entry]):
    """A stretch of a list. Pass `last_id` as `after` to get the next one while `has_more`."""

    object: Literal["list"] = "list"
    data: list[Entry]
    first_id: str | None
    last_id: str | None
    has_more: bool
    total: int

    @classmethod
    def of(cls, data: Sequence[Entry], *, has_more: bool, total: int) -> ListPublic[Entry]:
        """Fills in the ids of the ends."""
        return cls(
            data=list(data),
            first_id=data[0].id if data else None,
            last_id=data[-1].id if data else None,
            has_more=has_more,
            total=total,
        )


class WarningPublic(Public):
    """Something to know about a document; `pages` is empty when it concerns the whole of it."""

    code: str
    message: str
    pages: list[int]


class FaultPublic(Public):
    """Why something failed: a stable code and a message that says what to do."""

    code: str
    message: str


class BoxPublic(Public):
    """Fractions of the page's width and height, origin top left."""

    page: int
    x0: float
    y0: float
    x1: float
    y1: float


class ProblemPublic(BaseModel):
    """RFC 9457 problem details. Some codes add members, such as `existing_id` or `progress`."""

    model_config = ConfigDict(extra="allow")

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable, for programs.")
    request_id: str = Field(description="Also in the X-Request-ID header and in the log.")
