"""Text to token ids and back, for byte-level and SentencePiece-style BPE tokenizers.

It knows no file formats: it is built from the content of a tokenizer.json (GGUF metadata is put
into that form by the loader). Text is data: a document that holds "<|im_end|>" gives the ordinary
tokens of those ten characters. Control tokens come only from `encode(text, special=True)`, which
is for rendered chat templates, and even there not from what a message said (see `chat`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tokenizers

from backend.chat_template import ChatTemplate

Span = tuple[int, int]

_QUOTE = "\ufdd0"
"""A Unicode noncharacter put after the first character of a control token's text where a message
says it, taken out again by `encode(special=True)`."""
_MARKUP = re.compile(r"[<\[].*[>\]]", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


@dataclass(frozen=True, slots=True)
class AddedToken:
    """A token that the checkpoint adds to its BPE vocabulary. `control`: never made from text."""

    text: str
    id: int
    control: bool
    lstrip: bool = False
    rstrip: bool = False


def is_control(text: str, special: bool) -> bool:
    """Whether an added token steers the model ("<|im_end|>", "<tool_call>") rather than being
    text that the BPE merges can't reach (runs of spaces, emoji)."""
    return special or _MARKUP.fullmatch(text) is not None


def _byte_alphabet() -> dict[str, int]:
    """Character -> byte of GPT-2's byte-level alphabet (openai/gpt-2, encoder.py)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    alphabet = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if byte not in printable)
    alphabet.update({chr(256 + index): byte for index, byte in enumerate(others)})
    return alphabet


class Tokenizer:
    """One checkpoint's tokenizer. Safe to share between threads once built.

    `encode` adds no beginning-of-text token: a chat template writes its own, and a document's
    tokens stand in the middle of a prompt.
    """

    def __init__(self, spec: Mapping[str, Any], template: ChatTemplate) -> None:
        """`spec` is the content of a tokenizer.json; ValueError where it isn't a BPE tokenizer."""
        self.template = template
        self.added = _added_tokens(spec)
        self.control_ids = {token.text: token.id for token in self.added if token.control}
        plain = _plain_spec(spec, self.added)
        self.byte_level = _is_byte_level(spec)
        self._strip_first_space = not self.byte_level
        self._backend = _build(plain)
        vocab: dict[str, int] = spec["model"]["vocab"]
        self._bytes = self._token_bytes(vocab)
        self.vocab_size = len(self._bytes)
        self._control_of_id = {id_: text for text, id_ in self.control_ids.items()}
        self._control_pattern = _control_pattern(self.added)
        self._quoted_pattern = re.compile(
            "|".join(
                f"{re.escape(text[:1])}{_QUOTE}{re.escape(text[1:])}" for text in self.control_ids
            )
            or r"(?!)"
        )

    def _token_bytes(self, vocab: Mapping[str, int]) -> list[bytes]:
        alphabet = _byte_alphabet()
        size = 1 + max([*vocab.values(), *(token.id for token in self.added)])
        table = [b""] * size
        for text, id_ in vocab.items():
            if self.byte_level:
                known = all(character in alphabet for character in text)
                table[id_] = bytes(map(alphabet.__getitem__, text)) if known else text.encode()
            elif match := _BYTE_TOKEN.fullmatch(text):
                table[id_] = bytes([int(match[1], 16)])
            else:
                table[id_] = text.replace("\u2581", " ").encode()
        for token in self.added:
            table[token.id] = token.text.encode()
        return table

    def encode(self, text: str, special: bool = False) -> list[int]:
        """The tokens of `text`. With `special`, control tokens written out in it become control
        tokens; everything else is encoded as ordinary text either way."""
        if not special:
            return list(self._encode(text).ids)
        ids: list[int] = []
        position = 0
        for match in self._control_pattern.finditer(text):
            ids += self._encode_piece(text[position : match.start()])
            text_found = match[0] if match[0] in self.control_ids else match[0].strip()
            ids.append(self.control_ids[text_found])
            position = match.end()
        return ids + self._encode_piece(text[position:])

    def _encode_piece(self, text: str) -> list[int]:
        unquoted = self._quoted_pattern.sub(lambda match: match[0].replace(_QUOTE, ""), text)
        return list(self._encode(unquoted).ids)

    def _encode(self, text: str) -> tokenizers.Encoding:
        # Half a surrogate pair is no character and can't be encoded; U+FFFD keeps its place.
        sound = _SURROGATE.sub("\ufffd", text)
        # As a batch of one: `encode` keeps every other thread from running, for 0.5 s a megabyte.
        return self._backend.encode_batch([sound], add_special_tokens=False)[0]

    def encode_with_spans(self, text: str) -> tuple[list[int], list[Span]]:
        """The tokens of `text` and, for each, its half-open range of code points in `text`.

        Starts and ends never go backwards and the ranges cover the whole text. Tokens that are
        parts of one character all have that character's range. What a normaliser drops belongs to
        the token after it.
        """
        encoding = self._encode(text)
        return list(encoding.ids), _cover(encoding.offsets, len(text))

    def decode(self, ids: Sequence[int], special: bool = False) -> str:
        """The text of `ids`; bytes that are no UTF-8 become U+FFFD. Control tokens are left out
        unless `special`."""
        data = b"".join(self.token_bytes(id_, special) for id_ in ids)
        return self.trim_start(data.decode("utf-8", errors="replace"))

    def trim_start(self, text: str) -> str:
        """`text`, the start of a decoded stream, without the space that SentencePiece-style
        tokenizers put before the first word."""
        return text[1:] if self._strip_first_space and text.startswith(" ") else text

    def token_bytes(self, id_: int, special: bool = False) -> bytes:
        """The bytes that one token stands for; none for a control token unless `special`."""
        if id_ in self._control_of_id and not special:
            return b""
        return self._bytes[id_] if 0 <= id_ < len(self._bytes) else b""

    def chat(
        self, messages: Sequence[Mapping[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """The chat template rendered over `messages` ("role", "content"), for
        `encode(text, special=True)`. Control tokens named inside a message stay text there.

        Raises ChatTemplateError when there is no template or it refuses the messages.
        """
        quoted = [{**message, "content": self.quote(message["content"])} for message in messages]
        return self.template.render(quoted, add_generation_prompt)

    def quote(self, text: str) -> str:
        """`text` with the control tokens it names marked as text, to be put into a prompt that
        goes through `encode(special=True)`."""
        pattern = self._control_pattern
        return pattern.sub(lambda match: _quote_one(match[0]), text)


def _build(spec: Mapping[str, Any]) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer.from_str(json.dumps(spec, ensure_ascii=False))
    except Exception as error:
        # The library raises plain Exception for every fault in its JSON.
        raise ValueError(f"the tokenizer can't be built: {error}") from error


def _quote_one(text: str) -> str:
    lead = len(text) - len(text.lstrip()) + 1
    return text[:lead] + _QUOTE + text[lead:]


def _added_tokens(spec: Mapping[str, Any]) -> tuple[AddedToken, ...]:
    return tuple(
        AddedToken(
            text=token["content"],
            id=token["id"],
            control=is_control(token["content"], token.get("special", False)),
            lstrip=token.get("lstrip", False),
            rstrip=token.get("rstrip", False),
        )
        for token in spec.get("added_tokens", [])
    )


def _control_pattern(added: Sequence[AddedToken]) -> re.Pattern[str]:
    """Matches control tokens, longest first, with the white space that they swallow."""
    control = sorted(
        (token for token in added if token.control), key=lambda token: -len(token.text)
    )
    parts = [
        # Blanks are looked at from their beginning alone: else a run of them takes its square.
        (r"(?:(?<!\s)\s++)?" if token.lstrip else "")
        + re.escape(token.text)
        + (r"\s*+" if token.rstrip else "")
        for token in control
    ]
    return re.compile("|".join(parts) or r"(?!)")


def _plain_spec(spec: Mapping[str, Any], added: Sequence[AddedToken]) -> dict[str, Any]:
    """The tokenizer without what could turn text into control tokens or move its offsets."""
    model = spec.get("model", {})
    if model.get("type", "BPE") != "BPE" or "merges" not in model:
        raise ValueError(f"its model is {model.get('type')}, not BPE")
    vocab = dict(model["vocab"])
    for token in added:
        if not token.control:
            # The library numbers added tokens by itself unless the vocabulary holds them.
            vocab[token.text] = token.id
        elif token.text != model.get("unk_token"):
            vocab.pop(token.text, None)
    keep = {token.text for token in added if not token.control}
    return {
        **spec,
        "model": {**model, "vocab": vocab},
        "added_tokens": [
            token for token in spec.get("added_tokens", []) if token["content"] in keep
        ],
        "post_processor": None,
        "truncation": None,
        "padding": None,
    }


def _is_byte_level(spec: Mapping[str, Any]) -> bool:
    decoder = spec.get("decoder") or {}
    parts = [part["type"] for part in decoder.get("decoders", [decoder]) if part]
    if "ByteLevel" in parts:
        return True
    if "ByteFallback" in parts or "Metaspace" in parts:
        return False
    raise ValueError(
        f"its decoder ({', '.join(parts) or 'none'}) is neither byte-level nor fallback"
    )


def _cover(offsets: Sequence[Span], length: int) -> list[Span]:
    spans: list[Span] = []
    end_before = 0
    for start, end in offsets:
        start = min(start, end_before) if not spans or start > end_before else start
        end = max(end, end_before)
        spans.append((start, end))
        end_before = end
    if spans and end_before < length:
        spans[-1] = (spans[-1][0], length)
    return spans
