from __future__ import annotations

import io
import zipfile

import pytest

from retrieval.errors import Damaged, Encrypted, ParseError, TypeMismatch, UnsupportedType
from retrieval.parse.sniff import sniff

PDF = b"%PDF-1.7\n1 0 obj"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
EMAIL = b"From: a@example.com\r\nSubject: Contract\r\n\r\nThe fee is USD 5."
HTML = b"<!DOCTYPE html><html><body>x</body></html>"


def zipped(*members: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for member in members:
            archive.writestr(member, "x")
    return stream.getvalue()


DOCX = zipped("[Content_Types].xml", "word/document.xml")


@pytest.mark.parametrize(
    ("data", "name", "kind"),
    [
        (PDF, "a.pdf", "pdf"),
        (b"\n\n" + PDF, "a.PDF", "pdf"),
        (PDF, "no ending", "pdf"),
        (DOCX, "a.docx", "docx"),
        (zipped("xl/workbook.xml"), "a.xlsx", "xlsx"),
        (EMAIL, "a.eml", "email"),
        (EMAIL, "a.txt", "text"),
        (HTML, "a.html", "html"),
        (b"<p>fragment", "a.htm", "html"),
        (HTML, "a.md", "markdown"),
        (b"# Title", "a.md", "markdown"),
        (b"BMW and the Supplier agree", "a.txt", "text"),
        (b"Clause 1", "a", "text"),
        ("第一条".encode("utf-16"), "a.txt", "text"),
        (
            ("甲方应当于收到发票之日起三十日内付款，上下不一。" * 50).encode("utf-16-le"),
            "a.txt",
            "text",
        ),
    ],
)
def test_the_content_decides(data: bytes, name: str, kind: str) -> None:
    assert sniff(data, name) == kind


@pytest.mark.parametrize(
    ("data", "name", "what"),
    [
        (PDF, "a.txt", "a PDF"),
        (PDF, "a.docx", "a PDF"),
        (PDF, "a.doc", "a PDF"),
        (DOCX, "a.pdf", "a Word document"),
        (DOCX, "a.txt", "a Word document"),
        (DOCX, "a.doc", "a Word document"),
        (zipped("readme.txt"), "a.docx", "a ZIP archive"),
        (zipped("xl/workbook.xml"), "a.docx", "an Excel sheet"),
        (b"plain words", "a.pdf", "plain text"),
        (b"plain words", "a.docx", "plain text"),
        (b"plain words", "a.eml", "plain text"),
        (b"plain words", "a.xlsx", "plain text"),
        (HTML, "a.txt", "an HTML page"),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "a.pdf", "a PNG picture"),
        (b"{\\rtf1 hello}", "a.doc", "rich text"),
    ],
)
def test_a_wrong_ending_is_refused_with_what_it_really_is(
    data: bytes, name: str, what: str
) -> None:
    with pytest.raises((TypeMismatch, UnsupportedType), match=what):
        sniff(data, name)


@pytest.mark.parametrize(
    ("data", "name", "words"),
    [
        (OLE + "WordDocument".encode("utf-16-le"), "a.doc", "save it as DOCX"),
        (zipped("xl/workbook.bin"), "a.xlsb", "save it as XLSX"),
        (OLE + "Workbook".encode("utf-16-le"), "a.xls", "save it as XLSX"),
        (OLE + "__substg1.0_0037".encode("utf-16-le"), "a.msg", "save it as EML"),
        (zipped("ppt/slides.xml"), "a.pptx", "PowerPoint"),
        (zipped("readme.txt"), "a.zip", "ZIP archive"),
        (b"\xff\xd8\xff\xe0" + bytes(40), "a.jpg", "JPEG"),
        (b"a,b,c", "a.csv", "not read"),
        (bytes(range(1, 9)) * 200, "a.bin", "binary"),
    ],
)
def test_other_types_are_refused_by_name(data: bytes, name: str, words: str) -> None:
    with pytest.raises(UnsupportedType, match=words):
        sniff(data, name)


def test_a_password_protected_office_file_is_called_that() -> None:
    with pytest.raises(Encrypted, match="password"):
        sniff(OLE + "EncryptedPackage".encode("utf-16-le"), "a.docx")


@pytest.mark.parametrize("name", ["a.docx", "a.zip", "a"])
def test_a_cut_off_zip_is_damaged(name: str) -> None:
    with pytest.raises(Damaged, match="cut off"):
        sniff(DOCX[:60], name)


def test_every_refusal_has_a_stable_code() -> None:
    with pytest.raises(ParseError) as refusal:
        sniff(PDF, "a.txt")
    assert refusal.value.code == "type_mismatch"
