"""The first use of an engine pays for things the second does not; this pays before anyone waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backend.types import Request, SamplingParams

if TYPE_CHECKING:
    from app.engines import AnyEngine


def warm_up(engine: AnyEngine) -> None:
    """Generates two tokens. Raises what the engine raises, before anyone has asked."""
    prompt = tuple(engine.tokenizer.encode("What is the term of this agreement?"))
    for _ in engine.generate(Request("warm-up", prompt, SamplingParams(max_tokens=2))):
        pass
