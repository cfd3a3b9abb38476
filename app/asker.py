"""How this process answers a question: the one `ask`, with the options that its settings imply."""

from __future__ import annotations

import threading
from functools import partial

from app.answers import Asker
from app.ask import ask
from app.settings import Settings
from app.types import AskOptions

REMOTE_MAX_TOKENS = 320
"""Of the words of a model that is big enough to be worth a server of its own."""


SEARCHES = 2
"""Questions that are searched for at once. Python runs one thread at a time: more would take as
long together, and the engine's thread, which asks for its turn some hundred times a step, would
wait for all of them each time. So it was with 16: answers that had been begun before 64 askers came
were worded after 90 s, when these had gone. With two, on two cores, the 64 had 15 answers a second
and a document was read beside them at 45 tokens a second; with one 14 and 110, but then a search
that is long would keep all others waiting."""


def asker_for(settings: Settings) -> Asker:
    """`ask` with turns for its searches; with more evidence and longer words for model servers
    elsewhere."""
    turn = threading.BoundedSemaphore(SEARCHES)
    if not settings.remote_servers:
        return partial(ask, turn=turn)
    options = AskOptions(
        max_tokens=REMOTE_MAX_TOKENS, evidence_tokens=settings.remote_evidence_tokens
    )
    return partial(ask, options=options, turn=turn)
