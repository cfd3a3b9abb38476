"""Log-probabilities of tokens in the two shapes of OpenAI's API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from backend.tokenizer import Tokenizer
from backend.types import TokenEvent

LOWEST = -9999.0
"""JSON has no infinity; OpenAI sends this for a token of probability 0."""


def chat_logprobs(tokenizer: Tokenizer, events: Sequence[TokenEvent]) -> dict[str, Any]:
    """`choices[].logprobs` of a chat completion (or of a chunk of one)."""
    content = []
    for event in events:
        if event.token_id is None or event.logprob is None:
            continue
        best = [_chat_token(tokenizer, token, logprob) for token, logprob in event.best]
        content.append(
            {**_chat_token(tokenizer, event.token_id, event.logprob), "top_logprobs": best}
        )
    return {"content": content, "refusal": None}


def text_logprobs(
    tokenizer: Tokenizer, events: Sequence[TokenEvent], offset: int
) -> tuple[dict[str, Any], int]:
    """`choices[].logprobs` of a completion or of a chunk of one whose tokens begin at character
    `offset` of the answer; and where they end."""
    tokens, logprobs, best, offsets = [], [], [], []
    for event in events:
        if event.token_id is None or event.logprob is None:
            continue
        text = _token_text(tokenizer, event.token_id)
        tokens.append(text)
        logprobs.append(max(event.logprob, LOWEST))
        best.append({_token_text(tokenizer, token): max(lp, LOWEST) for token, lp in event.best})
        offsets.append(offset)
        offset += len(text)
    told = {
        "tokens": tokens,
        "token_logprobs": logprobs,
        "top_logprobs": best,
        "text_offset": offsets,
    }
    return told, offset


def _chat_token(tokenizer: Tokenizer, token: int, logprob: float) -> dict[str, Any]:
    return {
        "token": _token_text(tokenizer, token),
        "logprob": max(logprob, LOWEST),
        "bytes": list(tokenizer.token_bytes(token, special=True)),
    }


def _token_text(tokenizer: Tokenizer, token: int) -> str:
    """As OpenAI writes tokens: U+FFFD stands for a part of a character."""
    return tokenizer.token_bytes(token, special=True).decode("utf-8", errors="replace")
