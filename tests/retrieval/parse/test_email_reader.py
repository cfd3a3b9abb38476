from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path

import pytest

from retrieval.errors import Damaged, Encrypted, NoText
from retrieval.parse import parse_file
from retrieval.types import Document


def message(body: str = "The fee is USD 1,200, due in 30 days.") -> EmailMessage:
    made = EmailMessage()
    made["From"] = "王明 <wang@example.com>"
    made["To"] = "Buyer <buyer@example.com>"
    made["Date"] = "Fri, 01 Mar 2024 09:30:00 +0800"
    made["Subject"] = "采购合同 - supply agreement"
    made["X-Spam-Score"] = "77.5"
    if body:
        made.set_content(body)
    return made


def parse(tmp_path: Path, made: EmailMessage | bytes) -> Document:
    path = tmp_path / "mail.eml"
    path.write_bytes(made if isinstance(made, bytes) else bytes(made))
    return parse_file(path, path.name)


def test_fields_and_message_are_read(tmp_path: Path) -> None:
    document = parse(tmp_path, message())
    assert document.text.split("\n") == [
        "From: 王明 <wang@example.com>",
        "To: Buyer <buyer@example.com>",
        "Date: Fri, 01 Mar 2024 09:30:00 +0800",
        "Subject: 采购合同 - supply agreement",
        "",
        "The fee is USD 1,200, due in 30 days.",
    ]
    assert document.media_type == "message/rfc822"
    assert document.warnings == ()
    assert document.receipt is not None
    assert document.receipt.figures.missing_count == 0


def test_the_plain_part_is_preferred_and_html_read_without_one(tmp_path: Path) -> None:
    both = message()
    both.add_alternative("<p>The fee is in the plain part.</p>", subtype="html")
    assert "USD 1,200" in parse(tmp_path, both).text
    only = message("")
    only.set_content("<table><tr><td>Fee</td><td>EUR 9</td></tr></table>", subtype="html")
    assert parse(tmp_path, only).text.endswith("\nFee | EUR 9")


def test_attachments_are_named_and_not_read(tmp_path: Path) -> None:
    made = message()
    made.add_attachment(b"cap: USD 5", maintype="text", subtype="plain", filename="../附件一.txt")
    made.add_attachment(message("forwarded words"))
    document = parse(tmp_path, made)
    (warning,) = document.warnings
    assert warning.code == "attachments"
    assert "“附件一.txt”, a forwarded e-mail" in warning.message
    assert "USD 5" not in document.text and "forwarded" not in document.text


def test_a_message_of_attachments_only_is_refused_with_their_names(tmp_path: Path) -> None:
    made = message("")
    made.add_attachment(b"%PDF-1.7", maintype="application", subtype="pdf", filename="contract.pdf")
    with pytest.raises(NoText, match="contract.pdf"):
        parse(tmp_path, made)


def test_an_encrypted_message_is_called_that(tmp_path: Path) -> None:
    head = b"From: a@example.com\r\nSubject: x\r\nContent-Type: application/pkcs7-mime\r\n\r\nMIAG"
    with pytest.raises(Encrypted):
        parse(tmp_path, head)


@pytest.mark.parametrize("charset", ["gb2312", "gb18030", "no-such-charset"])
def test_chinese_bytes_with_a_wrong_or_narrow_charset(tmp_path: Path, charset: str) -> None:
    head = (
        "From: a@example.com\r\nSubject: x\r\nMIME-Version: 1.0\r\n"
        f"Content-Type: text/plain; charset={charset}\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"
    )
    words = "违约金为合同总价的百分之五，由鎔某支付。"
    assert words in parse(tmp_path, head.encode() + words.encode("gb18030")).text


def test_flowed_lines_are_joined(tmp_path: Path) -> None:
    head = b"From: a@example.com\r\nSubject: x\r\nContent-Type: text/plain; format=flowed\r\n\r\n"
    body = b"The cap is \r\nUSD 2,000,000 \r\nin total.\r\nBye\r\n"
    assert "The cap is USD 2,000,000 in total.\nBye" in parse(tmp_path, head + body).text


@pytest.mark.parametrize("field", [b"Subject: ", b"Content-Type: text/plain; x=", b"To: "])
def test_an_endless_header_is_refused_before_it_is_taken_apart(
    tmp_path: Path, field: bytes
) -> None:
    made = (
        b"From: a@b.example\r\n" + field + b"=?utf-8?B?5ZCI?= " * 50_000 + b"\r\n\r\nThe fee.\r\n"
    )
    with pytest.raises(Damaged, match=r"header “.*” has 8\d\d,\d{3} characters"):
        parse(tmp_path, made)


def test_parts_nested_without_end_are_refused(tmp_path: Path) -> None:
    head = b"From: a@example.com\r\nSubject: x\r\n"
    parts = b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (depth, depth)
        for depth in range(2000)
    )
    with pytest.raises(Damaged, match="nested"):
        parse(tmp_path, head + parts + b"\r\nThe fee is USD 5.\r\n")


def test_of_many_attachments_the_first_are_named(tmp_path: Path) -> None:
    made = message()
    for number in range(1200):
        made.add_attachment("x", filename=f"part{number}.txt")
    (warning,) = parse(tmp_path, made).warnings
    assert "part19.txt”, and 1,180 more." in warning.message and "part20" not in warning.message
