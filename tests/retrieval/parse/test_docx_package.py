from __future__ import annotations

import io
import struct
import time
import zipfile

import pytest

from retrieval.errors import Damaged, TooLarge
from retrieval.parse.docx_package import Package
from retrieval.parse.limits import MIB, ParseLimits

LIMITS = ParseLimits()
NS = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
PLAIN = f"<w:document {NS}><w:body/></w:document>"


def packed(members: dict[str, bytes | str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def read(data: bytes, limits: ParseLimits = LIMITS) -> None:
    with Package(data, "a.docx", limits) as package:
        package.document()


def test_a_bomb_of_one_letter_is_refused_in_seconds() -> None:
    data = packed({"word/document.xml": b"a" * (200 * MIB)})
    started = time.monotonic()
    with pytest.raises(TooLarge, match="100 times"):
        read(data)
    assert time.monotonic() - started < 5


def test_the_sum_of_what_is_unpacked_is_limited() -> None:
    text = "".join(f"<w:p><w:r><w:t>{n * 7919}</w:t></w:r></w:p>" for n in range(40_000))
    data = packed({"word/document.xml": f"<w:document {NS}><w:body>{text}</w:body></w:document>"})
    read(data)
    with pytest.raises(TooLarge, match="1 MiB"):
        read(data, ParseLimits(max_inflated_bytes=MIB))


def test_false_sizes_in_the_directory_do_not_help() -> None:
    data = bytearray(packed({"word/document.xml": b"a" * (20 * MIB)}))
    directory = data.index(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = struct.pack("<I", 100)
    with pytest.raises((Damaged, TooLarge)):
        read(bytes(data))


def test_ten_thousand_members_are_refused() -> None:
    members: dict[str, bytes | str] = {f"word/{n}.xml": b"" for n in range(10_000)}
    with pytest.raises(TooLarge, match="10000 packed files"):
        read(packed(members))


def test_many_large_pictures_are_no_bomb() -> None:
    members: dict[str, bytes | str] = {f"word/media/{n}.bmp": bytes(30 * MIB) for n in range(3)}
    members["word/document.xml"] = PLAIN
    read(packed(members))


def test_entities_are_refused_unread() -> None:
    bomb = (
        '<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;"><!ENTITY x SYSTEM "file:///etc/passwd">]>'
        + PLAIN.replace("<w:body/>", "<w:body>&x;&b;</w:body>")
    )
    with pytest.raises(Damaged, match="entities"):
        read(packed({"word/document.xml": bomb}))


@pytest.mark.parametrize("content", [b"", b"<w:document", b"<a><b></a>"])
def test_a_broken_part_is_called_damaged(content: bytes) -> None:
    with pytest.raises(Damaged, match="not well-formed"):
        read(packed({"word/document.xml": content}))


def test_a_missing_main_part_is_called_damaged() -> None:
    with pytest.raises(Damaged, match="missing"):
        read(packed({"word/styles.xml": PLAIN}))


def test_the_main_part_may_have_another_name() -> None:
    relations = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="r1" Type="http://x/officeDocument" Target="/word/document2.xml"/>'
        "</Relationships>"
    )
    read(packed({"_rels/.rels": relations, "word/document2.xml": PLAIN}))
