"""What every route of /v1 shares: its prefix, its faults of validation, what it depends on."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from app.api.openai.long_prompts import PromptThreads
from app.api.openai.served_model import ServedModel
from app.completions import Completions
from app.errors import BadRequest
from app.generation_prompt import GenerationPrompts

PREFIX = "/v1"
NAME_CHARS = 100
"""Of a parameter in an error; an unknown one may be as long as a body."""


class OpenAIRoute(APIRoute):
    """Says 400 (not 422) for a request that does not hold what it should, and names the faulty
    parameter of its body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler with what is wrong in the request told in OpenAI's way."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await handler(request)
            except RequestValidationError as error:
                raise _bad_request(error) from error
            except BadRequest as error:
                if error.status != 422:
                    raise
                raise BadRequest(error.message, code=error.code, details=error.details) from error

        return handle


def new_router() -> APIRouter:
    """A router below /v1."""
    return APIRouter(prefix=PREFIX, tags=["openai"], route_class=OpenAIRoute)


def _bad_request(error: RequestValidationError) -> BadRequest:
    fault = error.errors()[0]
    if fault["type"] == "json_invalid":
        return BadRequest("The request body is not valid JSON.", code="bad_json")
    param = _param(fault["loc"])[:NAME_CHARS]
    if not param:
        return BadRequest("Send a JSON object with Content-Type: application/json.")
    if fault["type"] == "extra_forbidden":
        return BadRequest(
            f"Unknown parameter: {param!r}. It is none of those that this address takes.",
            code="unknown_parameter",
            details={"param": param},
        )
    return BadRequest(f"{param}: {fault['msg']}", code="invalid_value", details={"param": param})


def _param(place: tuple[int | str, ...]) -> str:
    """`messages[0].content` for ("body", "messages", 0, "content")."""
    name = ""
    for part in place[1:]:
        name += f"[{part}]" if isinstance(part, int) else f".{part}"
    return name.removeprefix(".")


def _completions(request: Request) -> Completions:
    return cast(Completions, request.app.state.completions)


def _prompts(request: Request) -> GenerationPrompts:
    return cast(GenerationPrompts, request.app.state.generation_prompts)


def _prompt_threads(request: Request) -> PromptThreads:
    return cast(PromptThreads, request.app.state.prompt_threads)


def _served_model(request: Request) -> ServedModel:
    return cast(ServedModel, request.app.state.served_model)


CompletionsDep = Annotated[Completions, Depends(_completions)]
PromptsDep = Annotated[GenerationPrompts, Depends(_prompts)]
PromptThreadsDep = Annotated[PromptThreads, Depends(_prompt_threads)]
ServedModelDep = Annotated[ServedModel, Depends(_served_model)]
