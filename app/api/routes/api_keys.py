"""/api-keys: make, list, look up, revoke. For admins alone."""

from __future__ import annotations

from fastapi import APIRouter

from app.api.deps import REQUIRE_ADMIN, KeysDep, StretchDep
from app.api.routes import API_PREFIX
from app.api.schemas.api_keys import ApiKeyCreate, ApiKeyMade, ApiKeyPublic
from app.api.schemas.common import ListPublic

router = APIRouter(prefix=f"{API_PREFIX}/api-keys", tags=["api-keys"], dependencies=[REQUIRE_ADMIN])


@router.post("", status_code=201)
def create_api_key(body: ApiKeyCreate, keys: KeysDep) -> ApiKeyMade:
    """Make a key. It stands in this reply and nowhere else."""
    made, key = keys.create(body.owner, role=body.role, expires_at=body.expires_at)
    return ApiKeyMade(**ApiKeyPublic.model_validate(made).model_dump(), key=key)


@router.get("")
def list_api_keys(keys: KeysDep, stretch: StretchDep) -> ListPublic[ApiKeyPublic]:
    """Keys by time of creation, revoked and expired ones too."""
    page = keys.list(stretch.limit, stretch.after, stretch.order)
    entries = [ApiKeyPublic.model_validate(one) for one in page.data]
    return ListPublic[ApiKeyPublic].of(entries, has_more=page.has_more, total=page.total)


@router.get("/{key_id}")
def get_api_key(key_id: str, keys: KeysDep) -> ApiKeyPublic:
    """One key."""
    return ApiKeyPublic.model_validate(keys.get(key_id))


@router.delete("/{key_id}")
def revoke_api_key(key_id: str, keys: KeysDep) -> ApiKeyPublic:
    """Revoke a key, from its next request on. The owner's documents stay."""
    return ApiKeyPublic.model_validate(keys.revoke(key_id))
