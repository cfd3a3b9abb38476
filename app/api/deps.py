"""What routes ask for, as `Annotated` dependencies. Everything is built once, by `create_app`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

import anyio
from fastapi import Depends, Query, Request

from app.answers import AnswerRuns
from app.api.metrics import Metrics
from app.paging import Order
from app.services import Services


@dataclass(frozen=True, slots=True)
class Limiters:
    """Threads that slow work may take from the rest."""

    uploads: anyio.CapacityLimiter
    rendering: anyio.CapacityLimiter
    comparing: anyio.CapacityLimiter


@dataclass(frozen=True, slots=True)
class Stretch:
    """Which part of a list is asked for."""

    limit: int
    after: str | None
    order: Order


def _services(request: Request) -> Services:
    return cast(Services, request.app.state.services)


def _runs(request: Request) -> AnswerRuns:
    return cast(AnswerRuns, request.app.state.runs)


def _metrics(request: Request) -> Metrics:
    return cast(Metrics, request.app.state.metrics)


def _limiters(request: Request) -> Limiters:
    return cast(Limiters, request.app.state.limiters)


def _stretch(
    limit: Annotated[int, Query(ge=1, le=100, description="Entries at most.")] = 20,
    after: Annotated[str | None, Query(description="Id of the last entry seen.")] = None,
    order: Annotated[Order, Query(description="By time of creation.")] = "desc",
) -> Stretch:
    return Stretch(limit, after, order)


ServicesDep = Annotated[Services, Depends(_services)]
RunsDep = Annotated[AnswerRuns, Depends(_runs)]
MetricsDep = Annotated[Metrics, Depends(_metrics)]
LimitersDep = Annotated[Limiters, Depends(_limiters)]
StretchDep = Annotated[Stretch, Depends(_stretch)]
