"""What routes ask for, as `Annotated` dependencies. Everything is built once, by `create_app`.

`OwnerDep` is whose request it is: a route hands it to every call that takes an `owner`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Query, Request

from app.answers import AnswerRuns
from app.api.key_check import CALLER
from app.api.metrics import Metrics
from app.api.owner_threads import OwnerThreads
from app.api_keys import ApiKeys, Caller
from app.errors import Forbidden, Unauthorized
from app.owners import LOCAL
from app.paging import Order
from app.services import Services


@dataclass(frozen=True, slots=True)
class Limiters:
    """Threads that slow work may take from the rest."""

    uploads: OwnerThreads
    rendering: OwnerThreads
    comparing: OwnerThreads


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


def _keys(request: Request) -> ApiKeys:
    return cast(ApiKeys, request.app.state.keys)


async def _caller(request: Request) -> Caller:
    if not _services(request).settings.several_owners:
        return Caller(LOCAL, "user")
    caller = getattr(request.state, CALLER, None)
    if caller is None:
        # An address that the key check does not cover must not open anybody's documents.
        raise Unauthorized("This address takes no API key.")
    return cast(Caller, caller)


async def _owner(caller: Annotated[Caller, Depends(_caller)]) -> str:
    return caller.owner


async def _operator(request: Request, caller: Annotated[Caller, Depends(_caller)]) -> None:
    if _services(request).settings.several_owners and caller.role != "admin":
        raise Forbidden("This needs the key of an admin (fineprint keys create --admin).")


async def _admin(request: Request, caller: Annotated[Caller, Depends(_caller)]) -> None:
    if not _services(request).settings.several_owners:
        raise Forbidden(
            "API keys are off, so nobody here is known as an admin. Manage keys with fineprint "
            "keys on the server's machine, and turn them on with FINEPRINT_API_KEYS=required.",
            code="api_keys_off",
        )
    await _operator(request, caller)


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
KeysDep = Annotated[ApiKeys, Depends(_keys)]
OwnerDep = Annotated[str, Depends(_owner)]
StretchDep = Annotated[Stretch, Depends(_stretch)]
REQUIRE_OPERATOR = Depends(_operator)
"""For routes about all owners together: everybody where keys are off, else an admin."""
REQUIRE_ADMIN = Depends(_admin)
"""For routes that manage keys: an admin's key."""
