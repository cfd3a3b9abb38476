"""Tells what a file is from its first bytes and compares that with its name. It never trusts the
name, and it does not read the content."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from typing import Literal

from retrieval.errors import Damaged, Encrypted, TypeMismatch, UnsupportedType
from retrieval.parse.decode import utf16_without_bom
from retrieval.parse.email_head import looks_like_email
from retrieval.parse.names import extension

Kind = Literal["pdf", "docx", "xlsx", "html", "email", "markdown", "text"]

MEDIA_TYPES: dict[Kind, str] = {
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "html": "text/html",
    "email": "message/rfc822",
    "markdown": "text/markdown",
    "text": "text/plain",
}
READS = "Fineprint reads PDF, DOCX, XLSX, HTML, EML, Markdown and TXT."

_LABELS: dict[Kind, str] = {
    "pdf": "a PDF",
    "docx": "a Word document (DOCX)",
    "xlsx": "an Excel sheet (XLSX)",
    "html": "an HTML page",
    "email": "an e-mail (EML)",
    "markdown": "Markdown",
    "text": "plain text",
}
_SUFFIXES: dict[Kind, str] = {
    "pdf": ".pdf",
    "docx": ".docx",
    "xlsx": ".xlsx",
    "html": ".html",
    "email": ".eml",
    "markdown": ".md",
    "text": ".txt",
}
_EXTENSIONS: dict[str, Kind] = {
    ".pdf": "pdf",
    ".docx": "docx",
    ".docm": "docx",
    ".dotx": "docx",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".eml": "email",
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
    ".text": "text",
}
ACCEPTED_EXTENSIONS = frozenset(_EXTENSIONS)
"""Endings of files that are read."""


@dataclass(frozen=True, slots=True)
class _Foreign:
    """A type that is not read: what to call it and what the user can do."""

    what: str
    remedy: str


_WORD = _Foreign("a Word 97–2003 document (DOC)", "Open it in Word and save it as DOCX.")
_PICTURE = "Run text recognition (OCR) on it and upload the searchable PDF."
_ARCHIVE = "Unpack it and upload the documents one by one."
_TABLE = "Open it in Excel and save it as XLSX."
_SLIDES = "Save the slides as PDF and upload that."

_MAGIC: tuple[tuple[int, bytes, _Foreign], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", _Foreign("a PNG picture", _PICTURE)),
    (0, b"\xff\xd8\xff", _Foreign("a JPEG picture", _PICTURE)),
    (0, b"GIF8", _Foreign("a GIF picture", _PICTURE)),
    (0, b"II*\x00", _Foreign("a TIFF picture", _PICTURE)),
    (0, b"MM\x00*", _Foreign("a TIFF picture", _PICTURE)),
    (8, b"WEBP", _Foreign("a WebP picture", _PICTURE)),
    (4, b"ftyp", _Foreign("a video or HEIC picture", _PICTURE)),
    (0, b"BM", _Foreign("a BMP picture", _PICTURE)),
    (0, b"{\\rtf", _Foreign("a rich text file (RTF)", "Open it in Word and save it as DOCX.")),
    (0, b"\x1f\x8b", _Foreign("a gzip archive", _ARCHIVE)),
    (0, b"7z\xbc\xaf\x27\x1c", _Foreign("a 7z archive", _ARCHIVE)),
    (0, b"Rar!", _Foreign("a RAR archive", _ARCHIVE)),
    (0, b"%!PS", _Foreign("a PostScript file", "Convert it to PDF and upload that.")),
    (0, b"\x7fELF", _Foreign("a program", "Upload the contract itself.")),
    (0, b"MZ\x90\x00", _Foreign("a program", "Upload the contract itself.")),
)
_BY_NAME: dict[str, _Foreign] = {
    ".doc": _WORD,
    ".wps": _Foreign("a WPS document", "Save it as DOCX or PDF."),
    ".rtf": _Foreign("a rich text file (RTF)", "Open it in Word and save it as DOCX."),
    ".odt": _Foreign("an OpenDocument text", "Save it as DOCX or PDF."),
    ".xls": _Foreign("an Excel 97–2003 sheet (XLS)", _TABLE),
    ".xlsb": _Foreign("a binary Excel sheet (XLSB)", _TABLE),
    ".ods": _Foreign("an OpenDocument sheet", "Save it as XLSX."),
    ".msg": _Foreign("an Outlook message (MSG)", "Open it in Outlook and save it as EML or text."),
    ".ppt": _Foreign("PowerPoint slides", _SLIDES),
    ".pptx": _Foreign("PowerPoint slides", _SLIDES),
    ".zip": _Foreign("a ZIP archive", _ARCHIVE),
}


def sniff(data: bytes, name: str) -> Kind:
    """The kind of `data`, whose display name is `name`.

    Raises TypeMismatch when the name's ending promises another kind, UnsupportedType for a type
    that is not read, Encrypted for a password-protected Office file, Damaged for a broken ZIP.
    """
    suffix = extension(name)
    promised = _EXTENSIONS.get(suffix)
    content = _content(data, name, promised)
    if isinstance(content, _Foreign):
        if promised is not None:
            raise TypeMismatch(
                f"“{name}” is named {suffix} but holds {content.what}. {content.remedy}"
            )
        raise UnsupportedType(f"“{name}” is {content.what}. {content.remedy} {READS}")
    if promised is None:
        if suffix == "" or content in ("pdf", "docx", "xlsx", "html"):
            if suffix in _BY_NAME:
                raise _mismatch(name, suffix, content)
            return content
        foreign = _BY_NAME.get(suffix)
        if foreign is not None:
            raise TypeMismatch(
                f"“{name}” is named {suffix} but holds {_LABELS[content]}. Rename it to "
                f"{_SUFFIXES[content]} and upload it again."
            )
        raise UnsupportedType(
            f"“{name}” ends in {suffix}, which is not read. {READS} Rename it to .txt if it is "
            "text."
        )
    if content == promised or (content == "text" and promised in ("markdown", "html")):
        return promised
    if content == "html" and promised == "markdown":
        return "markdown"
    raise _mismatch(name, suffix, content)


def looks_like_html(head: str) -> bool:
    """Whether text starts as an HTML page does."""
    start = head.lstrip("\ufeff \t\r\n").lower()
    if start.startswith("<?xml"):
        start = start.partition("?>")[2].lstrip()
    while start.startswith("<!--"):
        start = start.partition("-->")[2].lstrip()
    return start.startswith(("<!doctype html", "<html", "<head", "<body"))


def _mismatch(name: str, suffix: str, content: Kind) -> TypeMismatch:
    return TypeMismatch(
        f"“{name}” is named {suffix} but holds {_LABELS[content]}. Rename it to "
        f"{_SUFFIXES[content]} and upload it again."
    )


def _content(data: bytes, name: str, promised: Kind | None) -> Kind | _Foreign:
    if b"%PDF-" in data[:1024]:
        return "pdf"
    if data[:4] in (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08"):
        return _zip_content(data, name)
    if data[:8] == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":
        return _ole_content(data, name)
    for offset, magic, foreign in _MAGIC:
        if data[offset : offset + len(magic)] == magic and not _is_text_bmp(magic, data):
            return foreign
    if promised == "email" and looks_like_email(data):
        return "email"
    if promised in ("pdf", "docx", "xlsx"):
        if not _is_binary(data):
            return "html" if looks_like_html(data[:1024].decode("latin-1")) else "text"
        raise Damaged(
            f"“{name}” is named {_SUFFIXES[promised]} but its first bytes are not those of "
            f"{_LABELS[promised]}. The file is damaged or is something else; export it again."
        )
    if _is_binary(data):
        return _Foreign("binary data of an unknown type", "Save the document as PDF or DOCX.")
    head = data[:4096]
    sample = head.replace(b"\x00", b"").decode("latin-1").removeprefix("ÿþ").removeprefix("þÿ")
    return "html" if looks_like_html(sample.removeprefix("ï»¿")) else "text"


def _is_text_bmp(magic: bytes, data: bytes) -> bool:
    """ "BM" also begins words; a bitmap has four zero bytes at offset 6."""
    return magic == b"BM" and data[6:10] != b"\x00\x00\x00\x00"


def _is_binary(data: bytes) -> bool:
    """Over 2% control bytes, NUL apart (UTF-16 is full of it, and stray ones are stripped)."""
    head = data[:65536]
    controls = sum(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in head)
    nuls = head.count(0)
    if nuls > len(head) // 2 + 1:
        return True
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or controls - nuls <= max(8, len(head) * 0.02):
        return False
    # UTF-16 Chinese puts any byte anywhere, so the count alone says nothing.
    return utf16_without_bom(data) is None


def _zip_content(data: bytes, name: str) -> Kind | _Foreign:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = set(archive.namelist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise Damaged(
            f"“{name}” starts like a ZIP or DOCX file but its directory can't be read ({error}). "
            "It was cut off or damaged; download or export it again."
        ) from error
    if any(member.startswith("word/") and member.endswith(".xml") for member in members):
        return "docx"
    if any(member.startswith("xl/") for member in members):
        return _BY_NAME[".xlsb"] if "xl/workbook.bin" in members else "xlsx"
    if any(member.startswith("ppt/") for member in members):
        return _BY_NAME[".pptx"]
    if "content.xml" in members and "mimetype" in members:
        return _BY_NAME[".odt"]
    if "META-INF/container.xml" in members:
        return _Foreign("an EPUB book", "Convert it to PDF and upload that.")
    return _BY_NAME[".zip"]


def _ole_content(data: bytes, name: str) -> _Foreign:
    if "EncryptedPackage".encode("utf-16-le") in data:
        raise Encrypted(
            f"“{name}” is protected with a password. Open it in Word, remove the password "
            "(File, Info, Protect Document) and upload it again."
        )
    if "WordDocument".encode("utf-16-le") in data:
        return _WORD
    if "Workbook".encode("utf-16-le") in data:
        return _BY_NAME[".xls"]
    if "__substg1.0_".encode("utf-16-le") in data:
        return _BY_NAME[".msg"]
    if "PowerPoint Document".encode("utf-16-le") in data:
        return _BY_NAME[".ppt"]
    return _Foreign("an old Microsoft Office file", "Save it as DOCX or PDF.")
