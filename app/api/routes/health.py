"""/healthz, /readyz and /metrics: for supervisors, not for people."""

from __future__ import annotations

import logging

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from sqlalchemy.exc import SQLAlchemyError

from app.api import metrics as families
from app.api.deps import REQUIRE_OPERATOR, MetricsDep, RunsDep, ServicesDep
from app.errors import AppError
from app.health import Check, readiness
from app.services import Services

METRICS = "/metrics"

_log = logging.getLogger(__name__)

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process is alive and its event loop turns."""
    return {"status": "ok"}


# /health is where load clients look for a server of OpenAI's API.
@router.get("/health", include_in_schema=False)
@router.get("/readyz", responses={503: {"description": "A dependency is not ready."}})
def readyz(services: ServicesDep, runs: RunsDep) -> Response:
    """Every dependency answers; 503 names the one that doesn't. `status` is ready, warming up,
    stopping or unavailable."""
    checks = readiness(services, runs)
    ready = all(check.ok for check in checks)
    phase = services.gate.phase
    otherwise = "unavailable" if phase == "serving" else phase
    body = {
        "status": "ready" if ready else otherwise,
        "checks": {check.name: _told(check) for check in checks},
    }
    return JSONResponse(body, status_code=200 if ready else 503)


def _told(check: Check) -> dict[str, bool | str]:
    told: dict[str, bool | str] = {"ok": check.ok, "detail": check.detail}
    return told | {"code": check.code} if check.code else told


@router.get(
    METRICS,
    response_class=Response,
    dependencies=[REQUIRE_OPERATOR],
    responses={200: {"content": {"text/plain": {}}, "description": "Prometheus text format."}},
)
def metrics(services: ServicesDep, counted: MetricsDep) -> Response:
    """Counters for Prometheus, of all owners together: where keys are required, an admin's key is
    needed."""
    return Response(
        counted.exposition(_stored(services)), headers={"Content-Type": families.CONTENT_TYPE}
    )


def _stored(services: Services) -> int | None:
    try:
        return services.library.list(1, None, "desc").total
    except (AppError, SQLAlchemyError) as error:
        # Everything else is wanted most just then.
        _log.warning("the documents can't be counted for /metrics: %s", error)
        return None
