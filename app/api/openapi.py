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
_METHODS = frozenset({"get", "post", "put", "patch", "delete"})


def install(app: FastAPI) -> None:
    """Makes `app.openapi()` (and /docs) describe errors as they are sent."""

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(app)
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def _described(app: FastAPI) -> dict[str, Any]:
    schema = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    schemas = schema.setdefault("components", {}).setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
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
    return schema
