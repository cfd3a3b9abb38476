"""/v1/models: the model of this server."""

from __future__ import annotations

from typing import Any

from app.api.openai.route import ServedModelDep, new_router

router = new_router()


@router.get("/models")
def list_models(model: ServedModelDep) -> dict[str, Any]:
    """The models that can be asked: one."""
    return {"object": "list", "data": [model.public()]}


@router.get("/models/{name:path}")
def get_model(name: str, model: ServedModelDep) -> dict[str, Any]:
    """The model of that name."""
    model.require(name)
    return model.public()
