"""/v1/completions: the model goes on with a text or with token ids."""

from __future__ import annotations

import time

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool

from app.api.deps import ServicesDep
from app.api.openai.generation import send_generation
from app.api.openai.replies import Reply
from app.api.openai.requests import COMPLETION_TOKENS, CompletionRequest, Prompt
from app.api.openai.route import CompletionsDep, ServedModelDep, new_router
from app.completion_run import CompletionRun
from app.completions import Completions
from app.errors import BadRequest
from app.services import Services

router = new_router()


@router.post("/completions")
async def create_completion(
    body: CompletionRequest,
    request: Request,
    services: ServicesDep,
    completions: CompletionsDep,
    model: ServedModelDep,
) -> Response:
    """Go on with each of the prompts, as plain text: no chat template, no documents."""
    arrived = time.perf_counter()
    model.require(body.model)
    run = await run_in_threadpool(_start, body, services, completions, arrived)
    reply = Reply(run, "text", body, model=model.id, tokenizer=services.engine.tokenizer)
    return await send_generation(reply, request, stream=body.stream)


def _start(
    body: CompletionRequest, services: Services, completions: Completions, arrived: float
) -> CompletionRun:
    sampling = body.sampling(body.max_tokens or COMPLETION_TOKENS, body.logprobs)
    prompts = [_ids(prompt, services) for prompt in body.prompt]
    return completions.start(prompts, sampling, n=body.n, arrived=arrived)


def _ids(prompt: Prompt, services: Services) -> tuple[int, ...]:
    if isinstance(prompt, str):
        ids = tuple(services.engine.tokenizer.encode(prompt, special=True))
    else:
        ids = prompt
        size = services.engine.config.vocab_size
        wrong = next((id_ for id_ in ids if not 0 <= id_ < size), None)
        if wrong is not None:
            raise BadRequest(
                f"{wrong} is no token id of this model; they run from 0 to {size - 1}.",
                code="invalid_value",
                details={"param": "prompt"},
            )
    if not ids:
        raise BadRequest(
            "The prompt is empty. Give at least one token.",
            code="invalid_value",
            details={"param": "prompt"},
        )
    return ids
