"""The OpenAPI description: FastAPI's, with our errors in place of its own."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.api.openai import ERROR_RESPONSE as OPENAI_ERROR
from app.api.openai import PREFIX as OPENAI_PREFIX
from app.api.problems import MEDIA_TYPE
from app.api.schemas.common import ProblemPublic

_PROBLEM = "#/components/schemas/ProblemPublic"
_OPEN = frozenset({"/healthz", "/readyz"})
_SCHEMES = {
    "key": {"type": "http", "scheme": "bearer", "description": "An API key, fp_…"},
    "key_header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
_METHODS = frozenset({"get", "post", "put", "patch", "delete"})


def install(app: FastAPI, *, keys: bool) -> None:
    """Makes `app.openapi()` (and /docs) describe errors as they are sent. `keys`: whether requests
    need one."""

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(app, keys)
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def _described(app: FastAPI, keys: bool) -> dict[str, Any]:
    schema = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    schemas = schema.setdefault("components", {}).setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    if keys:
        schema["components"]["securitySchemes"] = _SCHEMES
    schemas["ProblemPublic"] = ProblemPublic.model_json_schema()
    problem = {
        "description": "A problem (RFC 9457).",
        "content": {MEDIA_TYPE: {"schema": {"$ref": _PROBLEM}}},
    }
    for address, path in schema["paths"].items():
        fault = OPENAI_ERROR if address.startswith(f"{OPENAI_PREFIX}/") else problem
        for method in _METHODS & path.keys():
            path[method]["responses"].pop("422", None)
            path[method]["responses"]["default"] = fault
            if keys and address not in _OPEN:
                path[method]["security"] = [{name: []} for name in _SCHEMES]
    return schema
