"""Reads an e-mail (EML, RFC 5322): who wrote to whom, when and about what, then the message.

The plain part is preferred to the HTML one. Attachments are named in a warning, never read.
"""

from __future__ import annotations

import re
from email import policy
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser

from retrieval.errors import Damaged, Encrypted, NoText
from retrieval.parse.cleaning import clean_text, collapse_spaces
from retrieval.parse.decode import decode
from retrieval.parse.html_reader import html_text
from retrieval.parse.names import display_name
from retrieval.parse.source import Source, plain_html
from retrieval.types import DocumentWarning

_SHOWN = ("From", "To", "Cc", "Date", "Subject")
_ENCRYPTED = ("application/pkcs7-mime", "application/x-pkcs7-mime", "multipart/encrypted")

_HEADER_CHARS = 65_536
"""The standard library takes a header apart in memory that grows with the square of its length:
150 MB at this limit, 20 GB at 850,000 characters. It has room for 1,500 recipients."""

_NAMED = 20
"""Attachments that the warning names, as every answer repeats it."""


def read_email(data: bytes, name: str) -> tuple[str, tuple[DocumentWarning, ...], Source]:
    """Text, warnings and the second count of an e-mail.

    Raises Encrypted, NoText when the message itself is empty, Undecodable, Damaged.
    """
    try:
        _check_headers(data, name)
        message = BytesParser(policy=policy.default).parsebytes(data)
        assert isinstance(message, EmailMessage)
        return _read(message, name)
    except RecursionError as error:
        raise Damaged(
            f"“{name}” can't be read: its parts are nested too deep. Open it in the mail program "
            "and save its text."
        ) from error


def _check_headers(data: bytes, name: str) -> None:
    """Raises Damaged for a header that is too long to be taken apart."""
    # This policy leaves headers as they are, so that no long one is taken apart here either.
    for part in BytesParser(policy=policy.compat32).parsebytes(data).walk():
        for field, value in part.raw_items():
            if len(value) > _HEADER_CHARS:
                raise Damaged(
                    f"“{name}” can't be read: its header “{field[:40]}” has {len(value):,} "
                    f"characters; the limit is {_HEADER_CHARS:,}. Open it in the mail program and "
                    "save its text."
                )


def _read(message: EmailMessage, name: str) -> tuple[str, tuple[DocumentWarning, ...], Source]:
    if message.get_content_type() in _ENCRYPTED:
        raise Encrypted(
            f"“{name}” is an encrypted e-mail. Open it in the mail program and save its text."
        )
    attachments = [_named(part) for part in message.iter_attachments()]
    if len(attachments) > _NAMED:
        attachments[_NAMED:] = [f"and {len(attachments) - _NAMED:,} more"]
    body = message.get_body(preferencelist=("plain", "html"))
    shown, plain = ("", "") if body is None else _body(body, name)
    if not any(char.isalnum() for char in shown) and body is not None:
        other = message.get_body(preferencelist=("html",))
        shown, plain = ("", "") if other is None else _body(other, name)
    if not any(char.isalnum() for char in shown):
        held = f": {', '.join(attachments)}. Save and upload those" if attachments else ""
        raise NoText(f"“{name}” holds no message of its own{held}.")
    fields = [f"{field}: {value}" for field in _SHOWN if (value := _field(message, field))]
    warnings: tuple[DocumentWarning, ...] = ()
    if attachments:
        warnings = (
            DocumentWarning(
                "attachments",
                f"Attachments were not read: {', '.join(attachments)}. Save and upload them on "
                "their own.",
            ),
        )
    head = "\n".join(fields)
    return f"{head}\n\n{shown}".strip(), warnings, Source(f"{head}\n{plain}")


def _field(message: EmailMessage, field: str) -> str:
    return collapse_spaces(clean_text(str(message.get(field, "")))).replace("\n", " ")


def _body(part: MIMEPart, name: str) -> tuple[str, str]:
    """The text of a part, and the same without our reading of its marks."""
    content = part.get_payload(decode=True)
    assert isinstance(content, bytes)
    raw, _ = decode(content, name, declared=part.get_content_charset())
    if part.get_content_type() == "text/html":
        return html_text(clean_text(raw)), plain_html(raw)
    text = clean_text(raw)
    if part.get_param("format") == "flowed":
        joined = "" if part.get_param("delsp") == "yes" else " "
        # RFC 3676: a line that ends in a space goes on in the next; "-- " is a signature mark.
        text = re.sub(r"(?m)^(?!-- $)(.*) \n(?!>)", rf"\1{joined}", text)
    return text.strip("\n"), raw


def _named(part: MIMEPart) -> str:
    filename = part.get_filename()
    if filename:
        return f"“{display_name(filename)}”"
    return "a forwarded e-mail" if part.get_content_type() == "message/rfc822" else "one unnamed"
