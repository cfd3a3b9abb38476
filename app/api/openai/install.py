"""Puts /v1 into an application: its routes, its error shape and what its routes need."""

from __future__ import annotations

import time
from collections.abc import Callable

from fastapi import FastAPI

from app.api.openai import chat, models, text
from app.api.openai.envelope import ErrorEnvelope
from app.api.openai.long_prompts import PromptThreads
from app.api.openai.route import PREFIX
from app.api.openai.served_model import ServedModel
from app.completion_run import CompletionRun
from app.completions import Completions
from app.generation_prompt import GenerationPrompts
from app.services import Services
from app.stored_texts import StoredTexts

__all__ = ["PREFIX", "install"]


def install(
    app: FastAPI, services: Services, on_finished: Callable[[CompletionRun], None]
) -> Completions:
    """Call it after every other middleware was added, so that their errors get the envelope too.
    `on_finished` is told of every generation that is over. The caller closes what it returns."""
    several = services.settings.several_owners
    completions = Completions(
        services.engine,
        several_owners=several,
        admit=services.gate.require_open,
        on_finished=on_finished,
    )
    app.state.completions = completions
    app.state.generation_prompts = GenerationPrompts(
        services.engine, services.library.loader, StoredTexts(services.database)
    )
    app.state.prompt_threads = PromptThreads(several=several)
    app.state.served_model = ServedModel.of(services, created=int(time.time()))
    app.add_middleware(ErrorEnvelope, prefix=PREFIX)
    for resource in (models, chat, text):
        app.include_router(resource.router)
    return completions
