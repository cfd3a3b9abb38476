"""The OpenAI-compatible doors under /v1: models, chat completions, completions."""

from app.api.openai.envelope import ERROR_RESPONSE
from app.api.openai.install import PREFIX, install

__all__ = ["ERROR_RESPONSE", "PREFIX", "install"]
