"""Puts /v1 into an application: its routes, its error shape and what its routes need."""

from __future__ import annotations

import time

from fastapi import FastAPI

from app.api.metrics import Metrics
from app.api.openai import chat, models, text
from app.api.openai.envelope import ErrorEnvelope
from app.api.openai.route import PREFIX
from app.api.openai.served_model import ServedModel
from app.completions import Completions
from app.services import Services

__all__ = ["PREFIX", "install"]


def install(app: FastAPI, services: Services, metrics: Metrics) -> Completions:
    """Call it after every other middleware was added, so that their errors get the envelope too.
    The caller closes what it returns."""
    completions = Completions(
        services.engine,
        admit=services.gate.require_open,
        on_finished=metrics.observe_completion,
    )
    app.state.completions = completions
    app.state.served_model = ServedModel.of(services, created=int(time.time()))
    app.add_middleware(ErrorEnvelope, prefix=PREFIX)
    for resource in (models, chat, text):
        app.include_router(resource.router)
    return completions
