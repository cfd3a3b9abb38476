"""What the browser uploads to the page lies in Gradio's folder first: some of the disk stays free,
and what stands still or breaks off leaves nothing there. How long a file may be the API tells, of
each file for itself: Gradio's own limit would refuse all files of a drop for one."""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio
from gradio.utils import get_upload_folder
from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import app_problem
from app.api.upload import IDLE_SECONDS
from app.errors import StorageFull

UPLOAD = "/gradio_api/upload"
"""Where the page's files are sent to."""


class PageUploads:
    """Wraps the mounted page. `reserve_bytes` of the disk with Gradio's folder stay free, which is
    asked before an upload, by its `Content-Length`, and with each piece of it."""

    def __init__(self, page: ASGIApp, *, reserve_bytes: int) -> None:
        self._page = page
        self._reserve_bytes = reserve_bytes
        folder = Path(get_upload_folder())
        self._folders = (folder, *folder.parents)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != UPLOAD:
            await self._page(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "")
        lacking = self._lacking(int(length) if length.isdecimal() else 0)
        if lacking:
            await app_problem(StorageFull(lacking))(scope, receive, send)
            return
        await self._page(scope, _Upload(receive, self).receive, send)

    def _lacking(self, size: int) -> str:
        """What keeps so many bytes more out, "" when there is room."""
        # Gradio makes its folder with the first upload.
        folder = next(one for one in self._folders if one.is_dir())
        free = shutil.disk_usage(folder).free
        if not self._reserve_bytes or free - size >= self._reserve_bytes:
            return ""
        return (
            f"Only {free / 1e6:,.0f} MB are free at {folder}, and uploads leave "
            f"{self._reserve_bytes / 1e6:,.0f} MB of the disk free (FINEPRINT_DISK_RESERVE_MB). "
            "Free some space, or set GRADIO_TEMP_DIR to another disk."
        )

    def require_room(self, size: int) -> None:
        """Raises MultiPartException where so many bytes more do not fit."""
        lacking = self._lacking(size)
        if lacking:
            raise MultiPartException(lacking)


class _Upload:
    """One upload on its way in. A MultiPartException is what Gradio removes the file at."""

    def __init__(self, receive: Receive, uploads: PageUploads) -> None:
        self._receive = receive
        self._uploads = uploads
        self._over = False

    async def receive(self) -> Message:
        """The next message, if there is room for its bytes."""
        if self._over:
            return await self._receive()
        with anyio.move_on_after(IDLE_SECONDS) as clock:
            message = await self._receive()
        if clock.cancelled_caught:
            raise MultiPartException(
                f"Nothing of the upload came for {IDLE_SECONDS:.0f} seconds. Send the file again."
            )
        if message["type"] == "http.disconnect":
            raise MultiPartException("The upload broke off. Send the file again.")
        self._over = not message.get("more_body", False)
        self._uploads.require_room(len(message.get("body", b"")))
        return message
