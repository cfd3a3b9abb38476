"""/v1/completions: the model goes on with a text or with token ids."""

from __future__ import annotations

import time
from functools import partial

from fastapi import Request, Response

from app.api.deps import OwnerDep, ServicesDep
from app.api.openai.generation import send_generation
from app.api.openai.replies import Reply
from app.api.openai.requests import COMPLETION_TOKENS, CompletionRequest, Prompt
from app.api.openai.route import (
    CompletionsDep,
    PromptsDep,
    PromptThreadsDep,
    ServedModelDep,
    new_router,
)
from app.completion_run import CompletionRun
from app.completions import Completions
from app.errors import BadRequest
from app.generation_prompt import GenerationPrompt, GenerationPrompts
from app.services import Services

router = new_router()


@router.post("/completions")
async def create_completion(
    body: CompletionRequest,
    request: Request,
    services: ServicesDep,
    owner: OwnerDep,
    completions: CompletionsDep,
    prompts: PromptsDep,
    threads: PromptThreadsDep,
    model: ServedModelDep,
) -> Response:
    """Go on with each of the prompts, as plain text: no chat template. A text that holds a stored
    document's whole text is read by that document's KV; token ids are read as they are."""
    arrived = time.perf_counter()
    model.require(body.model)
    texts = [prompt for prompt in body.prompt if isinstance(prompt, str)]
    start = partial(_start, body, services, owner, completions, prompts, arrived)
    matched = texts if body.match_documents else []
    run = await threads.run(
        owner,
        texts,
        request,
        start,
        matched=matched,
        arrived=arrived,
        timeout_s=body.timeout_s,
    )
    reply = Reply(run, "text", body, model=model.id, tokenizer=services.engine.tokenizer)
    return await send_generation(reply, request, stream=body.stream)


def _start(
    body: CompletionRequest,
    services: Services,
    owner: str,
    completions: Completions,
    prompts: GenerationPrompts,
    arrived: float,
) -> CompletionRun:
    sampling = body.sampling(body.max_tokens or COMPLETION_TOKENS, body.logprobs)
    given = [
        _given(prompt, body, services, owner, prompts, sampling.max_tokens)
        for prompt in body.prompt
    ]
    return completions.start(
        given,
        sampling,
        owner=owner,
        n=body.n,
        arrived=arrived,
        timeout_s=body.timeout_s,
    )


def _given(
    prompt: Prompt,
    body: CompletionRequest,
    services: Services,
    owner: str,
    prompts: GenerationPrompts,
    answer_tokens: int,
) -> GenerationPrompt:
    if isinstance(prompt, str):
        given = prompts.text(
            prompt, owner=owner, answer_tokens=answer_tokens, match=body.match_documents
        )
    else:
        given = GenerationPrompt.of(prompt)
        size = services.engine.config.vocab_size
        wrong = next((id_ for id_ in prompt if not 0 <= id_ < size), None)
        if wrong is not None:
            raise BadRequest(
                f"{wrong} is no token id of this model; they run from 0 to {size - 1}.",
                code="invalid_value",
                details={"param": "prompt"},
            )
    if not given.tokens:
        raise BadRequest(
            "The prompt is empty. Give at least one token.",
            code="invalid_value",
            details={"param": "prompt"},
        )
    return given
