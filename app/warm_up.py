"""The first use of an engine pays for things the second does not; this pays before anyone is told
that the server is ready."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from backend.errors import BackendError
from backend.types import Request, SamplingParams

if TYPE_CHECKING:
    from app.engines import AnyEngine

_log = logging.getLogger(__name__)

PROMPT = "What is the term of this agreement?"


def warm_up(engine: AnyEngine) -> None:
    """Generates two tokens. Raises BackendError when the bundled engine can't, before anyone has
    asked. Model servers elsewhere may come up later: what they lack is logged."""
    prompt = tuple(engine.tokenizer.encode(PROMPT))
    request = Request("warm-up", prompt, SamplingParams(max_tokens=2), messages=(("user", PROMPT),))
    try:
        for event in engine.generate(request):
            if event.finish_reason == "error":
                raise BackendError(f"The model could not answer its first prompt: {event.error}")
    except BackendError as error:
        if engine.attends_pages:
            raise
        _log.warning("no model server answers now: %s", error)
