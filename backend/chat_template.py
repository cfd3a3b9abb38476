"""Renders a checkpoint's chat template in a sandbox. It knows no tokens and no files."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from backend.errors import ChatTemplateError


def _raise(message: str) -> str:
    raise jinja2.TemplateError(message)


def _now(pattern: str) -> str:
    return datetime.datetime.now().strftime(pattern)


def _to_json(value: object, indent: int | None = None) -> str:
    # Not Jinja's own filter: that one escapes for HTML.
    return json.dumps(value, ensure_ascii=False, indent=indent)


class ChatTemplate:
    """A Jinja template as checkpoints ship it; `source` None means that there is none.

    The template is the checkpoint's, so it runs in Jinja's immutable sandbox, with the same
    settings and helpers (`raise_exception`, `strftime_now`, `tojson`) as in transformers.
    """

    def __init__(self, source: str | None, bos_text: str = "", eos_text: str = "") -> None:
        self.source = source
        self._names = {"bos_token": bos_text, "eos_token": eos_text}
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise
        environment.globals["strftime_now"] = _now
        self._environment = environment

    def render(self, messages: Sequence[Mapping[str, str]], add_generation_prompt: bool) -> str:
        """Raises ChatTemplateError when there is no template or it refuses the messages."""
        if self.source is None:
            raise ChatTemplateError(
                "This model has no chat template. Use an instruction-tuned checkpoint, or put a "
                "chat_template.jinja into its folder."
            )
        try:
            return self._environment.from_string(self.source).render(
                messages=[dict(message) for message in messages],
                add_generation_prompt=add_generation_prompt,
                tools=None,
                **self._names,
            )
        except jinja2.TemplateError as error:
            raise ChatTemplateError(
                f"The model's chat template can't render these messages: {error}"
            ) from error
