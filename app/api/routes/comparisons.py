"""/comparisons: what changed between two versions of a contract."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter

from app.api.deps import LimitersDep, OwnerDep, ServicesDep
from app.api.routes import API_PREFIX
from app.api.schemas.comparisons import ComparisonCreate, ComparisonPublic
from app.comparisons import compare_stored

router = APIRouter(prefix=f"{API_PREFIX}/comparisons", tags=["comparisons"])


@router.post("")
async def create_comparison(
    asked: ComparisonCreate, services: ServicesDep, owner: OwnerDep, limiters: LimitersDep
) -> ComparisonPublic:
    """Compare two documents clause by clause. Nothing is stored."""
    old, new = asked.old_document_id, asked.new_document_id
    work = partial(compare_stored, services.library, old, new, owner=owner)
    result = await limiters.comparing.run(owner, work)
    return ComparisonPublic.model_validate(result)
