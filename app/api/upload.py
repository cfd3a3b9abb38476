"""A multipart upload as a readable stream: bytes go from the socket to the file store without a
copy in between, at the speed of the slower of the two.

The request is parsed on the event loop; the store reads from a worker thread, which asks the loop
for more. It does not know limits or storage: the reader stops reading when it has enough.
"""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import anyio
from anyio import from_thread
from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.exceptions import HTTPException

from app.errors import BadRequest, UnsupportedUpload
from retrieval.errors import Damaged, Encrypted, ParseError
from retrieval.parse.names import extension
from retrieval.parse.sniff import ACCEPTED_EXTENSIONS, READS, sniff

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

HEAD_BYTES = 65536
"""Enough to tell a file's kind."""
MOST_PARTS = 100
"""Of one form; it needs one. Each costs the event loop some time, and a body has room for a hundred
thousands of them."""
MOST_HEADER_BYTES = 16_384
"""Of one part; its longest header has the file's name."""
IDLE_SECONDS = 60.0
"""That may pass between two pieces of an upload: it holds a thread, and bytes on the disk."""
DRAIN_SECONDS = 5.0
"""How long a refused upload is still read: a client that is cut off while sending often shows
"connection reset" instead of the reason."""

_FORM = "Send the file as multipart/form-data in the field `file`: curl -F file=@contract.pdf"


class UploadedFile(io.RawIOBase):
    """The part `file` of a multipart request. `read` is for worker threads started by anyio.

    Raises BadRequest (from `begin` and `read`) when the request is no such upload or breaks off, an
    HTTPException (408) when nothing came for IDLE_SECONDS; what comes after that is dropped.
    """

    def __init__(self, request: Request) -> None:
        super().__init__()
        self.name = ""
        self._body: AsyncIterator[bytes] = aiter(request.stream())
        self._parser = _parser(
            _boundary(request),
            {
                "on_part_begin": self._part_begin,
                "on_header_field": self._header_field,
                "on_header_value": self._header_value,
                "on_header_end": self._header_end,
                "on_headers_finished": self._headers_finished,
                "on_part_data": self._part_data,
                "on_part_end": self._part_end,
                "on_end": self._form_end,
            },
        )
        self._buffer = bytearray()
        self._header: tuple[bytearray, bytearray] = (bytearray(), bytearray())
        self._parts = 0
        self._header_bytes = 0
        self._disposition = b""
        self._in_file = False
        self._found = False
        self._complete = False
        self._body_over = False

    async def begin(self) -> bytes:
        """Reads until the file's first HEAD_BYTES (or all of it) are there; returns them without
        consuming them."""
        await self._fill(HEAD_BYTES)
        if not self._found:
            raise BadRequest(f"The request holds no file. {_FORM}", code="no_file")
        return bytes(self._buffer[:HEAD_BYTES])

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes of the file, at most `size`; b"" at its end, which is only reported when
        the whole request arrived."""
        wanted = size if size >= 0 else 1 << 62
        from_thread.run(self._fill, wanted)
        taken = bytes(self._buffer[:wanted])
        del self._buffer[:wanted]
        return taken

    async def drain(self) -> None:
        """Reads what the client still sends, for DRAIN_SECONDS at most, and drops it."""
        with anyio.move_on_after(DRAIN_SECONDS):
            async for _ in self._body:
                pass

    async def _fill(self, wanted: int) -> None:
        while len(self._buffer) < wanted and not self._body_over:
            chunk = await self._piece()
            if chunk is None:
                self._body_over = True
                break
            try:
                self._parser.write(chunk)
            except FormParserError as error:
                raise BadRequest(f"The form can't be read ({error}). {_FORM}") from error
        if self._body_over and not self._complete:
            raise BadRequest("The upload broke off. Send the file again.", code="incomplete")

    async def _piece(self) -> bytes | None:
        """The next bytes of the request; None at its end."""
        with anyio.move_on_after(IDLE_SECONDS):
            return await anext(self._body, None)
        raise HTTPException(
            408,
            f"Nothing of the upload came for {IDLE_SECONDS:.0f} seconds. Send the file again.",
            {"Connection": "close"},
        )

    def _part_begin(self) -> None:
        self._disposition = b""
        self._header_bytes = 0
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise BadRequest(
                f"The form has more than {MOST_PARTS} parts. {_FORM}", code="too_many_parts"
            )

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._take_header(self._header[0], data[start:end])

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._take_header(self._header[1], data[start:end])

    def _take_header(self, into: bytearray, data: bytes) -> None:
        self._header_bytes += len(data)
        if self._header_bytes > MOST_HEADER_BYTES:
            raise BadRequest(
                f"A part of the form has more than {MOST_HEADER_BYTES:,} bytes of headers. {_FORM}"
            )
        into.extend(data)

    def _header_end(self) -> None:
        field, value = self._header
        if field.lower() == b"content-disposition":
            self._disposition = bytes(value)
        self._header = (bytearray(), bytearray())

    def _headers_finished(self) -> None:
        _, options = parse_options_header(self._disposition)
        if b"filename" not in options:
            return
        if options.get(b"name") != b"file":
            raise BadRequest(f"The form has a file in an unknown field. {_FORM}", code="bad_field")
        if self._found:
            raise BadRequest("Send one file per request.", code="several_files")
        self._found = self._in_file = True
        self.name = _unescaped(options[b"filename"].decode("utf-8", "replace"))

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        if self._in_file:
            self._buffer += data[start:end]

    def _part_end(self) -> None:
        self._in_file = False

    def _form_end(self) -> None:
        self._complete = True


def refuse_foreign(head: bytes, name: str) -> None:
    """Raises UnsupportedUpload for a kind of file that is not read, told by its first bytes and its
    name. What only the whole file can show is left to the parser."""
    if not head:
        return
    try:
        sniff(head, name)
    except (Damaged, Encrypted) as error:
        # The head of a ZIP container has no directory yet, so only the name can speak.
        suffix = extension(name)
        if suffix and suffix not in ACCEPTED_EXTENSIONS:
            raise UnsupportedUpload(
                f"“{name}” ends in {suffix}, which is not read. {READS}"
            ) from error
    except ParseError as error:
        raise UnsupportedUpload(str(error), code=error.code) from error


def _parser(boundary: bytes, callbacks: MultipartCallbacks) -> MultipartParser:
    try:
        return MultipartParser(boundary, callbacks)
    except FormParserError as error:
        raise BadRequest(f"The form can't be read ({error}). {_FORM}") from error


def _unescaped(name: str) -> str:
    """The name as the user has it: browsers write these three characters, and no others, so.
    Source: https://html.spec.whatwg.org/#multipart-form-data"""
    for escaped, character in (("%22", '"'), ("%0D", "\r"), ("%0A", "\n")):
        name = name.replace(escaped, character)
    return name


def _boundary(request: Request) -> bytes:
    kind, options = parse_options_header(request.headers.get("content-type"))
    boundary = options.get(b"boundary")
    if kind != b"multipart/form-data" or not boundary:
        raise UnsupportedUpload(f"This is not a file upload. {_FORM}", code="not_multipart")
    return boundary
