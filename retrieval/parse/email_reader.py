"""Reads an e-mail (EML, RFC 5322): who wrote to whom, when and about what, then the message.

The plain part is preferred to the HTML one. Attachments are named in a warning, never read.
"""

from __future__ import annotations

import re
from email import policy
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser

from retrieval.errors import Encrypted, NoText
from retrieval.parse.cleaning import clean_text, collapse_spaces
from retrieval.parse.decode import decode
from retrieval.parse.html_reader import html_text
from retrieval.parse.names import display_name
from retrieval.parse.source import Source, plain_html
from retrieval.types import DocumentWarning

_SHOWN = ("From", "To", "Cc", "Date", "Subject")
_ENCRYPTED = ("application/pkcs7-mime", "application/x-pkcs7-mime", "multipart/encrypted")


def read_email(data: bytes, name: str) -> tuple[str, tuple[DocumentWarning, ...], Source]:
    """Text, warnings and the second count of an e-mail.

    Raises Encrypted, NoText when the message itself is empty, Undecodable, Damaged.
    """
    message = BytesParser(policy=policy.default).parsebytes(data)
    assert isinstance(message, EmailMessage)
    if message.get_content_type() in _ENCRYPTED:
        raise Encrypted(
            f"“{name}” is an encrypted e-mail. Open it in the mail program and save its text."
        )
    attachments = [_named(part) for part in message.iter_attachments()]
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
