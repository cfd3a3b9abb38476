"""/v1/chat/completions: the model answers messages, or the product answers about documents."""

from __future__ import annotations

import time
from functools import partial

from fastapi import Request, Response

from app.api.deps import OwnerDep, RunsDep, ServicesDep
from app.api.openai.document_chat import answer_documents
from app.api.openai.generation import send_generation
from app.api.openai.replies import Reply
from app.api.openai.requests import ChatRequest
from app.api.openai.route import (
    CompletionsDep,
    PromptsDep,
    PromptThreadsDep,
    ServedModelDep,
    new_router,
)
from app.completion_run import CompletionRun
from app.completions import Completions
from app.generation_prompt import GenerationPrompts
from app.services import Services

router = new_router()


@router.post("/chat/completions")
async def create_chat_completion(
    body: ChatRequest,
    request: Request,
    services: ServicesDep,
    owner: OwnerDep,
    completions: CompletionsDep,
    prompts: PromptsDep,
    threads: PromptThreadsDep,
    runs: RunsDep,
    model: ServedModelDep,
) -> Response:
    """Answer the last message. With `document_ids` it is a question about these documents, and the
    answer is the product's: quotes with citations in `annotations`. Without them the model answers
    alone; where a message holds a stored document's whole text, by that document's KV."""
    arrived = time.perf_counter()
    model.require(body.model)
    if body.document_ids is not None:
        return await answer_documents(body, request, services, runs, model, owner)
    texts = [item.content for item in body.messages]
    users = [item.content for item in body.messages if item.role == "user"]
    start = partial(_start, body, services, owner, completions, prompts, arrived)
    matched = users if body.match_documents else []
    run = await threads.run(
        owner,
        texts,
        request,
        start,
        matched=matched,
        arrived=arrived,
        timeout_s=body.timeout_s,
    )
    reply = Reply(run, "chat", body, model=model.id, tokenizer=services.engine.tokenizer)
    return await send_generation(reply, request, stream=body.stream)


def _start(
    body: ChatRequest,
    services: Services,
    owner: str,
    completions: Completions,
    prompts: GenerationPrompts,
    arrived: float,
) -> CompletionRun:
    sampling = body.sampling(
        body.limit or services.engine.config.max_positions,
        body.top_logprobs if body.logprobs else None,
    )
    messages = [
        {"role": "system" if item.role == "developer" else item.role, "content": item.content}
        for item in body.messages
    ]
    prompt = prompts.chat(
        messages, owner=owner, answer_tokens=body.limit, match=body.match_documents
    )
    return completions.start(
        [prompt],
        sampling,
        owner=owner,
        n=body.n,
        fill_window=body.limit is None,
        arrived=arrived,
        timeout_s=body.timeout_s,
    )
