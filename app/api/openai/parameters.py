"""Parameters of OpenAI's API that this server does not have. One that would change the result is
refused by name unless its value says "as usual"; one that changes nothing is left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.errors import BadRequest

_IDLE: dict[str, tuple[Any, ...]] = {
    "audio": (),
    "best_of": (1,),
    "echo": (False,),
    "frequency_penalty": (0,),
    "function_call": ("none",),
    "functions": ([],),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "presence_penalty": (0,),
    "reasoning_effort": (),
    "response_format": ({"type": "text"},),
    "store": (False,),
    "suffix": ("",),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "verbosity": (),
    "web_search_options": (),
}
"""Parameters that change the result, each with the values that leave it as it is."""

_HARMLESS = frozenset(
    {
        "metadata",
        "parallel_tool_calls",
        "prediction",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "user",
    }
)


def known_only(body: Any) -> Any:
    """`body` without nulls and without parameters that change nothing. Raises BadRequest
    (`unsupported_parameter`) for one that would; unknown names stay for the schema to refuse."""
    if not isinstance(body, Mapping):
        return body
    kept = {}
    for name, value in body.items():
        if value is None or name in _HARMLESS:
            continue
        if name not in _IDLE:
            kept[name] = value
        elif not any(_same(value, idle) for idle in _IDLE[name]):
            raise BadRequest(
                f"{name} is not supported by this server. Leave it out"
                + (f", or give {_IDLE[name][0]!r}." if _IDLE[name] else "."),
                code="unsupported_parameter",
                details={"param": name},
            )
    return kept


def _same(value: Any, idle: Any) -> bool:
    # In Python False equals 0 and True equals 1; in JSON they are different things.
    return isinstance(value, bool) == isinstance(idle, bool) and bool(value == idle)
