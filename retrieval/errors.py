"""The error tree of retrieval.

    RetrievalError
      ParseError            a file that can't be read; `code` is stable, the message says what to do
        EmptyFile           empty_file
        NoText              no_text, no_text_layer
        Encrypted           encrypted
        Damaged             damaged
        UnsupportedType     unsupported_type
        TypeMismatch        type_mismatch
        TooLarge            too_large
        Undecodable         undecodable
        ParseTimeout        parse_timeout
        ParseCancelled      cancelled

It does not know HTTP statuses or exit codes: the doors translate `code`.
"""

from __future__ import annotations

from typing import ClassVar


class RetrievalError(Exception):
    """Base of everything that retrieval raises on purpose."""


class ParseError(RetrievalError):
    """A file that can't be turned into a Document. The message is meant for the user."""

    code: ClassVar[str] = "parse_error"


class EmptyFile(ParseError):
    """The file has no bytes."""

    code = "empty_file"


class NoText(ParseError):
    """The file opens but holds no words to search; see also `NoTextLayer`."""

    code = "no_text"


class NoTextLayer(NoText):
    """A PDF whose pages are pictures: it needs text recognition (OCR) first."""

    code = "no_text_layer"


class Encrypted(ParseError):
    """The file needs a password to be opened."""

    code = "encrypted"


class Damaged(ParseError):
    """The file is of a known type but its content can't be read."""

    code = "damaged"


class UnsupportedType(ParseError):
    """The file is of a type that is not read."""

    code = "unsupported_type"


class TypeMismatch(ParseError):
    """The name promises one type, the content is another."""

    code = "type_mismatch"


class TooLarge(ParseError):
    """The file, or what it unpacks to, is over a limit of ParseLimits."""

    code = "too_large"


class Undecodable(ParseError):
    """The bytes of a text file fit none of the encodings tried."""

    code = "undecodable"


class ParseTimeout(ParseError):
    """Reading took longer than ParseLimits.timeout_seconds."""

    code = "parse_timeout"


class ParseCancelled(ParseError):
    """The caller's `cancelled` callback said stop."""

    code = "cancelled"
