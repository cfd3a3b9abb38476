"""Tells an e-mail by its header fields. Knows nothing of its parts."""

from __future__ import annotations

import re

_FIRST = re.compile(
    rb"(?:From|To|Cc|Date|Subject|Received|Return-Path|Delivered-To|Reply-To|Sender|Message-ID"
    rb"|MIME-Version|Content-Type|X-[\w-]+|DKIM-Signature|Authentication-Results|ARC-[\w-]+):",
    re.IGNORECASE,
)


def looks_like_email(data: bytes) -> bool:
    """Whether the first lines are header fields of an e-mail, two of them known ones."""
    head = data[:8192].lstrip(b"\xef\xbb\xbf\r\n").splitlines()
    known = 0
    for line in head:
        if not line.strip():
            break
        if _FIRST.match(line):
            known += 1
        elif line[:1] not in b" \t" and b":" not in line:
            return False
    return known >= 2
