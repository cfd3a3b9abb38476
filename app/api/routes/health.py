"""/healthz, /readyz and /metrics: for supervisors, not for people."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from app.api import metrics as families
from app.api.deps import REQUIRE_OPERATOR, MetricsDep, RunsDep, ServicesDep
from app.health import Check, readiness

METRICS = "/metrics"

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
    documents = services.library.list(1, None, "desc").total
    return Response(counted.exposition(documents), headers={"Content-Type": families.CONTENT_TYPE})
