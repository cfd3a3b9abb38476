"""Puts the REST application together, /v1 included. It opens nothing: the services come open and
stay open."""

from __future__ import annotations

import importlib.metadata
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

import anyio.to_thread
from fastapi import FastAPI

from app.answer_run import AnswerRun
from app.answers import AnswerRuns, Asker
from app.api import openai, openapi, problems
from app.api.bodies import BODY_LIMIT, PROMPT_LIMIT, BodyBytes, BodyLimits
from app.api.deps import Limiters
from app.api.key_check import KeyCheck
from app.api.metrics import Metrics
from app.api.middleware import RequestLayer
from app.api.owner_threads import OwnerThreads
from app.api.routes import (
    API_PREFIX,
    answers,
    api_keys,
    comparisons,
    conversations,
    documents,
    health,
    pins,
)
from app.api.unknown import unknown_addresses
from app.api_keys import ApiKeys
from app.asker import asker_for
from app.completion_run import CompletionRun
from app.services import Services
from app.spans import Span, answer_spans, completion_spans
from app.tracing import Tracing, open_tracing

_Run = TypeVar("_Run", AnswerRun, CompletionRun)
_DESCRIPTION = "Upload long contracts, ask questions, get answers with checked quotes."


def create_app(
    services: Services, *, asker: Asker | None = None, local_only: bool = False
) -> FastAPI:
    """The application over open services. `local_only` refuses Host names other than localhost:
    use it whenever only this machine is to be served. `asker` answers one question; by default
    as the settings say."""
    several = services.settings.several_owners
    metrics = Metrics()
    tracing = open_tracing(services.settings.otel_endpoint)
    runs = AnswerRuns(
        services.engine,
        services.library.load,
        services.conversations,
        asker or asker_for(services.settings),
        grace_seconds=services.settings.stream_grace_s,
        several_owners=several,
        admit=services.gate.require_open,
        on_finished=_each(metrics.answers.observe, tracing, partial(answer_spans, services.engine)),
    )
    metrics.answers.watch(lambda: runs.waiting, lambda: runs.running)
    metrics.watch_engine(lambda: services.engine.counters)
    metrics.watch_steps(lambda: services.engine.step_times)
    metrics.watch_heat(services.gate.heat)
    services.library.runner.on_read = metrics.observe_reading

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await anyio.to_thread.run_sync(runs.close)
            await anyio.to_thread.run_sync(completions.close)
            if tracing is not None:
                await anyio.to_thread.run_sync(tracing.close)

    app = FastAPI(
        title="Fineprint",
        description=_DESCRIPTION,
        version=importlib.metadata.version("fineprint"),
        lifespan=lifespan,
    )
    app.state.services = services
    app.state.runs = runs
    app.state.metrics = metrics
    # One page at a time: PDFium is not made for several threads.
    app.state.limiters = Limiters(
        uploads=OwnerThreads(16, 12 if several else 16),
        rendering=OwnerThreads(1, 1),
        comparing=OwnerThreads(2, 1 if several else 2),
    )
    keys = app.state.keys = ApiKeys(services.database)
    bodies = BodyBytes(services.settings.request_bodies_mb * 1_000_000, several=several)
    app.state.bodies = bodies
    metrics.watch_bodies(lambda: bodies.held)
    app.add_middleware(
        BodyLimits,
        limits={API_PREFIX: BODY_LIMIT, openai.PREFIX: PROMPT_LIMIT},
        upload_path=f"{API_PREFIX}/documents",
        room=bodies,
    )
    if several:
        # Around the body limits, which ask whose request it is; within the request layer, which
        # gives a refusal its id and counts it.
        app.add_middleware(
            KeyCheck,
            authenticate=keys.authenticate,
            prefixes=("/api", openai.PREFIX, health.METRICS),
        )
    app.add_middleware(
        RequestLayer,
        metrics=metrics,
        prefixes=(API_PREFIX, openai.PREFIX),
        local_only=local_only,
    )
    problems.install(app)
    completions = openai.install(
        app,
        services,
        _each(metrics.completions.observe, tracing, partial(completion_spans, services.engine)),
    )
    openapi.install(app, keys=several)
    for resource in (documents, pins, conversations, answers, comparisons, api_keys, health):
        app.include_router(resource.router)
    app.router.routes.extend(unknown_addresses("/api", openai.PREFIX))
    return app


def _each(
    count: Callable[[_Run], None],
    tracing: Tracing | None,
    spans: Callable[[_Run], Sequence[Span]],
) -> Callable[[_Run], None]:
    """What is done with every run that is over."""

    def finished(run: _Run) -> None:
        count(run)
        if tracing is not None:
            tracing.take(run.timeline, partial(spans, run))

    return finished
