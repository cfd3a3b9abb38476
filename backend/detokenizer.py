"""Turns a stream of token ids into text, whole characters only. It knows nothing of stop strings.

A Chinese character or an emoji is often two to four tokens. Decoding each alone gives U+FFFD; here
the bytes wait until the character is whole.
"""

from __future__ import annotations

import codecs

from backend.tokenizer import Tokenizer


class IncrementalDecoder:
    """Decodes one stream. All that `push` and `flush` return, joined, is `tokenizer.decode(ids)`.

    Control tokens give no text. After `flush` the decoder starts a new stream.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._at_start = True

    def push(self, token_id: int) -> str:
        """The characters that this token completes; empty while a character is incomplete."""
        return self._trim(self._utf8.decode(self._tokenizer.token_bytes(token_id)))

    def flush(self) -> str:
        """What is left at the end of the stream: U+FFFD for an incomplete character, else
        nothing."""
        rest = self._trim(self._utf8.decode(b"", final=True))
        self._utf8.reset()
        self._at_start = True
        return rest

    def _trim(self, text: str) -> str:
        if not self._at_start or not text:
            return text
        self._at_start = False
        return self._tokenizer.trim_start(text)
