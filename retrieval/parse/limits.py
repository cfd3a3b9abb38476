"""How much one file may cost. Knows no configuration: the caller builds it from its settings."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """Limits for one `parse_file` call.

    `max_inflated_bytes` counts bytes that were really unpacked, never the sizes a file declares.
    `max_ratio` is unpacked to packed bytes of one archive member; it counts from 8 MiB on, since
    small members of repeated markup are often packed that tightly. A 872-page handbook unpacks
    14:1. `memory_bytes` is the address space of the process that reads a PDF. At most
    `max_ocr_pages` pictures of text are recognised in one PDF (0: none), each in at most
    `ocr_page_seconds`, which come on top of `timeout_seconds`.
    """

    max_bytes: int = 200 * MIB
    max_pages: int = 5000
    max_inflated_bytes: int = 128 * MIB
    max_ratio: int = 100
    max_members: int = 5000
    timeout_seconds: float = 300.0
    memory_bytes: int = 3072 * MIB
    max_ocr_pages: int = 500
    ocr_page_seconds: float = 60.0
