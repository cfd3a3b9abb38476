"""What the model is given for a plain generation: the prompt as it was sent, or, where it holds the
whole text of a stored document, the text around it and the KV pages of what answers it.

The model then reads what a question about that document would read: the passages that retrieval
picks, instead of the whole text again. Knows documents and the engine's calls; does not know HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.answer.evidence import find
from app.errors import BadRequest, Conflict, NotFound
from app.prompt import PromptPlan, Span, evidence_ranges
from app.prompt_tokens import encoded_within
from app.readiness import make_known
from app.stored_texts import SHORTEST, StoredTexts
from backend.errors import ChatTemplateError

if TYPE_CHECKING:
    from app.documents import LoadedDocument
    from app.engines import AnyEngine
    from app.loading import Loader
    from backend.tokenizer import Tokenizer

HEAD_TOKENS = 512
"""Of the prompt before the document: an instruction or a question. It is computed in one step, for
which nobody else's answer should have to wait."""
EVIDENCE_TOKENS = 1536
"""Of the document, as for a question about it."""
LEAST_EVIDENCE = 512
"""With less room than that beside prompt and answer the document is left in the prompt."""
MOST_LOOKED_AT = 32
"""Long messages of a conversation that are looked through for a document, the last ones."""
QUERY_CHARS = 4000
"""The end of what stands around the document, by which its passages are picked."""
# A private-use character: marks the document's place while the template is rendered.
_HERE = "\ue0f1"

_Render = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class HeldDocument:
    """A stored document that a prompt holds. `tokens` is its length, `kv_tokens` how many of them
    had KV when the prompt came, `spans` the half-open character ranges that the model is shown."""

    id: str
    tokens: int
    kv_tokens: int
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class GenerationPrompt:
    """`tokens` is the length of the prompt as it was sent; `plan` what the model is given. Without
    a `document` they are the same."""

    plan: PromptPlan
    tokens: int
    document: HeldDocument | None = None

    @property
    def given(self) -> int:
        """Tokens that the model is given."""
        shown = sum(last - first for first, last in self.plan.evidence)
        return len(self.plan.prompt_ids) + shown

    @classmethod
    def of(cls, ids: Sequence[int], messages: tuple[tuple[str, str], ...] = ()) -> GenerationPrompt:
        """These tokens and nothing else; `messages` for model servers elsewhere."""
        return cls(PromptPlan(tuple(ids), messages=messages), len(ids))


class GenerationPrompts:
    """Makes prompts for one engine over the stored documents."""

    def __init__(self, engine: AnyEngine, loader: Loader, texts: StoredTexts) -> None:
        self._engine = engine
        self._loader = loader
        self._texts = texts

    def chat(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        owner: str,
        answer_tokens: int | None,
        match: bool = True,
    ) -> GenerationPrompt:
        """The chat template over `messages` ("role", "content"). `answer_tokens`: how many may
        come, None for what the window leaves. `match`: look for stored documents of `owner` in the
        users' messages, the last one first. Raises BadRequest when the template refuses them or
        they are far beyond the model's window."""
        last = max((i for i, one in enumerate(messages) if one["role"] == "user"), default=-1)
        for index in _places_of_texts(messages) if match else ():
            question = "" if index == last else messages[last]["content"]

            def render(content: str, index: int = index) -> str:
                changed = [*messages[:index], {"role": "user", "content": content}]
                return _rendered(self._engine.tokenizer, [*changed, *messages[index + 1 :]])

            held = self._held(messages[index]["content"], render, question, owner, answer_tokens)
            if held is not None:
                return held
        rendered = _rendered(self._engine.tokenizer, messages)
        said = tuple((message["role"], message["content"]) for message in messages)
        return GenerationPrompt.of(self._encoded(rendered, "messages"), said)

    def text(
        self, prompt: str, *, owner: str, answer_tokens: int | None, match: bool = True
    ) -> GenerationPrompt:
        """A text to go on with. Raises BadRequest for one far beyond the model's window."""
        if match:
            held = self._held(prompt, lambda text: text, "", owner, answer_tokens)
            if held is not None:
                return held
        return GenerationPrompt.of(self._encoded(prompt, "prompt"))

    def _encoded(self, text: str, param: str) -> list[int]:
        window = self._engine.config.max_positions
        ids = encoded_within(self._engine.tokenizer, text, window)
        if ids is None:
            raise BadRequest(
                f"The prompt has far more tokens than the model's window, which is {window:,}. "
                "Shorten it. To ask about a long document, upload it (POST /api/v1/documents) and "
                "pass its id in document_ids of /v1/chat/completions.",
                code="context_length_exceeded",
                details={"param": param},
            )
        return ids

    def _held(
        self, content: str, render: _Render, question: str, owner: str, answer_tokens: int | None
    ) -> GenerationPrompt | None:
        """The prompt with the pages of the document that `content` holds; None where it holds none,
        or where they can't be used. `question`: the words to look for it by, if not those around
        it."""
        if not self._engine.attends_pages:
            return None
        found = self._texts.find(content, owner)
        if found is None:
            return None
        before, after = content[: found.start], content[found.end :]
        words = question or f"{before}\n{after}"
        if not words.strip():
            # Nothing is asked: whoever wants the document gone on with wants all of it read.
            return None
        marked = render(before.replace(_HERE, "") + _HERE + after.replace(_HERE, ""))
        head, here, tail = marked.partition(_HERE)
        tokenizer, window = self._engine.tokenizer, self._engine.config.max_positions
        head_ids = encoded_within(tokenizer, head, HEAD_TOKENS)
        if not here or head_ids is None or len(head_ids) > HEAD_TOKENS:
            return None
        tail_ids = encoded_within(tokenizer, tail, window)
        if not tail_ids:
            return None
        room = window - len(head_ids) - len(tail_ids)
        room -= answer_tokens or 1
        if room < LEAST_EVIDENCE:
            return None
        document = self._known(found.document_id)
        if document is None:
            return None
        evidence = _evidence(document, words, room)
        if evidence is None:
            return None
        total = len(document.tokens.token_ids)
        progress = self._engine.progress(document.tokens.key)
        return GenerationPrompt(
            PromptPlan(
                (*head_ids, *tail_ids),
                document_key=document.tokens.key,
                evidence=evidence,
                sink_len=len(head_ids),
            ),
            len(head_ids) + total + len(tail_ids),
            HeldDocument(
                found.document_id,
                total,
                progress.read_tokens if progress else 0,
                tuple(_characters(document, span) for span in evidence),
            ),
        )

    def _known(self, document_id: str) -> LoadedDocument | None:
        """The document, known to the engine; None for one that can't be asked now."""
        try:
            document = self._loader.load(document_id)
            make_known(self._engine, {document_id: document}, self._loader.load)
        except (Conflict, NotFound):
            # Its ingestion failed, or it was just deleted. The prompt holds every word of it.
            return None
        return document


def _places_of_texts(messages: Sequence[Mapping[str, str]]) -> list[int]:
    """The users' messages that are long enough to hold a document, the last one first."""
    long = [
        index
        for index, one in enumerate(messages)
        if one["role"] == "user" and len(one["content"]) >= SHORTEST
    ]
    return long[: -MOST_LOOKED_AT - 1 : -1]


def _evidence(document: LoadedDocument, around: str, room: int) -> tuple[Span, ...] | None:
    """Token ranges of the document for what stands around it in the prompt, best last: all of it
    if there is room. None when not even the best passage fits."""
    total = len(document.tokens.token_ids)
    most = min(EVIDENCE_TOKENS, room)
    if total <= most:
        return ((0, total),)
    words = " ".join(around.split())[-QUERY_CHARS:]
    chunks = find([document], words).chunks(0)
    # Nothing found: a document says at its beginning what it is.
    ranges = evidence_ranges(document, chunks, max_tokens=most) or ((0, most),)
    return ranges if sum(last - first for first, last in ranges) <= room else None


def _characters(document: LoadedDocument, tokens: Span) -> Span:
    spans = document.token_spans
    return int(spans[tokens[0]][0]), int(spans[tokens[1] - 1][1])


def _rendered(tokenizer: Tokenizer, messages: Sequence[Mapping[str, str]]) -> str:
    """The chat template over the messages. Raises BadRequest when it is missing or refuses them."""
    try:
        return tokenizer.chat(messages)
    except ChatTemplateError as error:
        raise BadRequest(str(error), details={"param": "messages"}) from error
