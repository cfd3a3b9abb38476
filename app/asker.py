"""How this process answers a question: the one `ask`, with the options that its settings imply."""

from __future__ import annotations

from functools import partial

from app.answers import Asker
from app.ask import ask
from app.settings import Settings
from app.types import AskOptions

REMOTE_MAX_TOKENS = 320
"""Of the words of a model that is big enough to be worth a server of its own."""


def asker_for(settings: Settings) -> Asker:
    """`ask` as it is, or with more evidence and longer words for model servers elsewhere."""
    if not settings.remote_servers:
        return ask
    options = AskOptions(
        max_tokens=REMOTE_MAX_TOKENS, evidence_tokens=settings.remote_evidence_tokens
    )
    return partial(ask, options=options)
