"""What /v1 takes: bodies of chat completions and completions, with OpenAI's names and ranges and
some of vLLM's (`ignore_eos`, `min_tokens`, `top_k`, `repetition_penalty`)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from app.api.openai.parameters import known_only
from app.api.schemas.answers import MAX_DOCUMENTS, TimeoutSeconds
from app.api.schemas.common import Number, Whole, of_few_fields
from app.errors import BadRequest
from backend.types import SamplingParams

MOST_CHOICES = 16
MOST_STOPS = 16
MOST_PROMPTS = 64
MOST_MESSAGES = 10_000
COMPLETION_TOKENS = 16
"""Tokens of a completion that states no limit, as in OpenAI's API; a chat answer may fill the
model's window."""

TokenIds = tuple[int, ...]
Prompt = str | TokenIds
_Id = Annotated[str, Field(max_length=64)]


def _stops(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _text(value: Any) -> Any:
    """The text of a message: a string, or parts that are all text."""
    if not isinstance(value, list):
        return value
    texts = []
    for part in value:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind != "text":
            raise ValueError(
                f"only parts of type 'text' can be read, not {str(kind)[:40]!r} (no images, audio "
                "or files). To ask about a document upload it and pass document_ids"
            )
        text = part.get("text")
        if not isinstance(text, str):
            raise ValueError("a part of type 'text' needs a string under 'text'")
        texts.append(text)
    return "".join(texts)


def _prompts(value: Any) -> Any:
    """One or several prompts, each a string or token ids, as a tuple."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and value:
        if all(_is_id(item) for item in value):
            return (tuple(value),)
        if len(value) > MOST_PROMPTS:
            raise ValueError(f"{len(value):,} prompts are too many; the limit is {MOST_PROMPTS}")
        if all(isinstance(item, str) for item in value):
            return tuple(value)
        if all(isinstance(one, list) and all(map(_is_id, one)) for one in value):
            return tuple(tuple(one) for one in value)
    raise ValueError("give a string, a list of strings, a list of token ids or a list of those")


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_TEXT_PARTS = WithJsonSchema(
    {
        "anyOf": [
            {"type": "string"},
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"type": {"const": "text"}, "text": {"type": "string"}},
                },
            },
        ]
    }
)
_STOP_SCHEMA = WithJsonSchema(
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
)
_PROMPT_SCHEMA = WithJsonSchema(
    {
        "anyOf": [
            {"type": "string"},
            {"type": "array", "items": {"type": "string"}},
            {"type": "array", "items": {"type": "integer"}},
            {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        ]
    }
)


class _Object(BaseModel):
    """A JSON object of a body; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: Any) -> Any:
        return of_few_fields(value, BadRequest, "invalid_value")


class ChatMessage(_Object):
    """One message. `developer` is read as `system`; `name` says nothing to the model."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Annotated[str, BeforeValidator(_text), _TEXT_PARTS]
    name: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        # The client's own reply messages hold nulls and what this server adds to an answer.
        if not isinstance(value, dict):
            return value
        return {
            name: item for name, item in value.items() if item is not None and name != "annotations"
        }


class StreamOptions(_Object):
    """`continuous_usage_stats`: the counts so far in every chunk (as in vLLM)."""

    include_usage: bool = False
    continuous_usage_stats: bool = False
    include_obfuscation: bool = False


class GenerationRequest(_Object):
    """What both kinds of completion take. `match_documents`: read a stored document that stands in
    the prompt by its KV; without it every prompt is read as it is. `timeout_s`: from the request's
    arrival; what is written by then is the answer."""

    model: Annotated[str, Field(min_length=1, max_length=4096)]
    max_tokens: Annotated[Whole, Field(ge=1)] | None = None
    temperature: Annotated[Number, Field(ge=0)] = 1.0
    top_p: Annotated[Number, Field(gt=0, le=1)] = 1.0
    top_k: Annotated[Whole, Field(ge=-1)] = 0
    repetition_penalty: Annotated[Number, Field(gt=0)] = 1.0
    seed: Annotated[Whole, Field(ge=-(2**63), lt=2**63)] | None = None
    stop: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...],
        Field(max_length=MOST_STOPS, fail_fast=True),
        BeforeValidator(_stops),
        _STOP_SCHEMA,
    ] = ()
    n: Annotated[Whole, Field(ge=1, le=MOST_CHOICES)] = 1
    ignore_eos: bool = False
    match_documents: bool = True
    min_tokens: Annotated[Whole, Field(ge=0)] = 0
    stream: bool = False
    stream_options: StreamOptions | None = None
    timeout_s: TimeoutSeconds | None = None

    @model_validator(mode="before")
    @classmethod
    def _known_only(cls, body: Any) -> Any:
        return known_only(body)

    @model_validator(mode="after")
    def _options_of_a_stream(self) -> GenerationRequest:
        if self.stream_options is not None and not self.stream:
            raise _bad("stream_options", "stream_options go with stream: true only.")
        return self

    @property
    def tells_logprobs(self) -> bool:
        """Whether log-probabilities are asked for."""
        return False

    def sampling(self, max_tokens: int, logprobs: int | None) -> SamplingParams:
        """The engine's parameters. Raises BadRequest where two of them disagree."""
        if self.min_tokens > max_tokens:
            raise _bad("min_tokens", f"min_tokens is over the limit of {max_tokens} tokens.")
        return SamplingParams(
            max_tokens=max_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            # -1 is vLLM's word for off.
            top_k=max(self.top_k, 0),
            repetition_penalty=self.repetition_penalty,
            seed=self.seed,
            stop=self.stop,
            ignore_eos=self.ignore_eos,
            min_tokens=self.min_tokens,
            logprobs=logprobs,
        )


class ChatRequest(GenerationRequest):
    """Body of POST /v1/chat/completions. With `document_ids` the last message is a question about
    these documents."""

    messages: Annotated[
        list[ChatMessage], Field(min_length=1, max_length=MOST_MESSAGES, fail_fast=True)
    ]
    max_completion_tokens: Annotated[Whole, Field(ge=1)] | None = None
    logprobs: bool = False
    top_logprobs: Annotated[Whole, Field(ge=0, le=20)] = 0
    document_ids: (
        Annotated[list[_Id], Field(min_length=1, max_length=MAX_DOCUMENTS, fail_fast=True)] | None
    ) = None

    @model_validator(mode="after")
    def _best_of_something(self) -> ChatRequest:
        if self.top_logprobs and not self.logprobs:
            raise _bad("top_logprobs", "top_logprobs goes with logprobs: true only.")
        return self

    @property
    def tells_logprobs(self) -> bool:
        """Whether log-probabilities are asked for."""
        return self.logprobs

    @property
    def limit(self) -> int | None:
        """Tokens of the answer; None: what the window leaves."""
        return self.max_completion_tokens or self.max_tokens


class CompletionRequest(GenerationRequest):
    """Body of POST /v1/completions."""

    prompt: Annotated[
        tuple[Prompt, ...],
        Field(max_length=MOST_PROMPTS),
        BeforeValidator(_prompts),
        _PROMPT_SCHEMA,
    ]
    logprobs: Annotated[Whole, Field(ge=0, le=20)] | None = None

    @property
    def tells_logprobs(self) -> bool:
        """Whether log-probabilities are asked for."""
        return self.logprobs is not None


def _bad(param: str, message: str) -> BadRequest:
    return BadRequest(message, code="invalid_value", details={"param": param})
