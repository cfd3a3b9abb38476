"""Puts the page into a web application; it speaks HTTP to the REST API and to nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import gradio as gr
from fastapi import FastAPI
from starlette.routing import Mount

from app.api.bodies import BodyLimits
from ui.client import Api
from ui.page import build_page
from ui.sign_in import FORM_BYTES, SIGN_IN, SignIn
from ui.theme import STYLESHEET, make_theme
from ui.uploads import UPLOAD, PageUploads

if TYPE_CHECKING:
    from app.settings import Settings

PAGE_LIMIT = 4_000_000
"""Bytes of a body to the page that is no upload: what its fields hold, which is far below."""
_SAMPLES = Path(__file__).resolve().parent.parent / "samples"


def mount(app: FastAPI, api_url: str, settings: Settings) -> FastAPI:
    """Mount the page at "/" of `app`, which `create_app` made, over the REST API at `api_url` (with
    `/api/v1`). Where the API needs keys the page asks for one.

    Mount it last: it takes every address that no other route has.
    """
    api = Api(api_url)
    # A wheel carries no samples; the page then offers none.
    samples = sorted(_SAMPLES.glob("*.pdf"))
    mounted: FastAPI = gr.mount_gradio_app(
        app,
        build_page(api, samples),
        path="/",
        footer_links=[],
        run_history=False,
        ssr_mode=False,
        pwa=False,
        mcp_server=False,
        enable_monitoring=False,
        show_error=False,
        theme=make_theme(),
        css_paths=[STYLESHEET],
        app_kwargs={"docs_url": None, "redoc_url": None, "openapi_url": None},
    )
    for route in mounted.router.routes:
        if isinstance(route, Mount):
            page = PageUploads(route.app, reserve_bytes=settings.disk_reserve_mb * 1_000_000)
            route.app = BodyLimits(
                SignIn(page, api) if settings.several_owners else page,
                # Who signs in has no key yet.
                limits={"/": PAGE_LIMIT, SIGN_IN: FORM_BYTES},
                upload_path=UPLOAD,
                room=app.state.bodies,
            )
    inner = mounted.router.lifespan_context

    @asynccontextmanager
    async def lifespan(running: FastAPI) -> AsyncIterator[None]:
        try:
            async with inner(running):
                yield
        finally:
            await api.close()

    mounted.router.lifespan_context = lifespan
    return mounted
