"""/v1/chat/completions: the model answers messages, or the product answers about documents."""

from __future__ import annotations

import time

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool

from app.api.deps import OwnerDep, RunsDep, ServicesDep
from app.api.openai.document_chat import answer_documents
from app.api.openai.generation import send_generation
from app.api.openai.replies import Reply
from app.api.openai.requests import ChatRequest
from app.api.openai.route import CompletionsDep, ServedModelDep, new_router
from app.completion_run import CompletionRun
from app.completions import Completions, chat_prompt
from app.services import Services

router = new_router()


@router.post("/chat/completions")
async def create_chat_completion(
    body: ChatRequest,
    request: Request,
    services: ServicesDep,
    owner: OwnerDep,
    completions: CompletionsDep,
    runs: RunsDep,
    model: ServedModelDep,
) -> Response:
    """Answer the last message. With `document_ids` it is a question about these documents, and the
    answer is the product's: quotes with citations in `annotations`."""
    arrived = time.perf_counter()
    model.require(body.model)
    if body.document_ids is not None:
        return await answer_documents(body, request, services, runs, model, owner)
    run = await run_in_threadpool(_start, body, services, completions, arrived)
    reply = Reply(run, "chat", body, model=model.id, tokenizer=services.engine.tokenizer)
    return await send_generation(reply, request, stream=body.stream)


def _start(
    body: ChatRequest, services: Services, completions: Completions, arrived: float
) -> CompletionRun:
    sampling = body.sampling(
        body.limit or services.engine.config.max_positions,
        body.top_logprobs if body.logprobs else None,
    )
    messages = [
        {"role": "system" if item.role == "developer" else item.role, "content": item.content}
        for item in body.messages
    ]
    prompt = chat_prompt(services.engine.tokenizer, messages)
    return completions.start(
        [prompt],
        sampling,
        n=body.n,
        fill_window=body.limit is None,
        arrived=arrived,
        messages=messages,
    )
