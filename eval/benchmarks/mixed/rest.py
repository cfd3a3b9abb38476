"""Fineprint's REST API under load. What happens to one document is in `visit`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from eval.benchmarks.mixed.clock import Clock
from eval.benchmarks.mixed.doors import Journey, Json, open_client, travelled
from eval.benchmarks.mixed.types import LoadRequest, RequestRecord, Reuse
from eval.benchmarks.mixed.visit import PREFIX, Visit
from eval.errors import PeerError

READ_TOKENS = "fineprint_engine_read_tokens_total"
"""Document tokens that went through the model, since the server began."""

_SAMPLE = re.compile(r"^(fineprint_(?:kv|engine)_\w+(?:\{[^}]*\})?) (\S+)$", re.MULTILINE)


class RestDoor:
    """One Fineprint server. `url` is its address without a path."""

    api = "rest"

    def __init__(self, url: str, *, timeout_s: float) -> None:
        self._client = open_client(url)
        self._timeout_s = timeout_s
        self._stored: dict[str, None] = {}

    async def prepare(self) -> Json:
        """The server's readiness. Raises PeerError when it is not ready."""
        probe = self._probe()
        reply: Json = {}

        async def ask() -> None:
            reply.update(await probe.json("ready", "GET", "/readyz"))

        fault = await travelled(probe, ask(), 30.0)
        if fault is not None:
            raise PeerError(
                f"{self._client.base_url} is no Fineprint server that is ready: {fault.message}"
            )
        return reply

    async def counters(self) -> Mapping[str, float]:
        """The KV store's and the engine's counters from /metrics."""
        probe = self._probe()
        text: list[str] = []

        async def ask() -> None:
            async with probe.reply("metrics", "GET", "/metrics") as response:
                await response.aread()
                text.append(response.text)

        fault = await travelled(probe, ask(), 30.0)
        if fault is not None:
            raise PeerError(f"{self._client.base_url}/metrics failed: {fault.message}")
        return {name: float(value) for name, value in _SAMPLE.findall(text[0])}

    async def serve(self, request: LoadRequest, arrival: float, clock: Clock) -> RequestRecord:
        """One document with its three questions."""
        visit = Visit(Journey(self._client, request, arrival, clock))
        fault = await travelled(visit.journey, visit.story(), self._timeout_s)
        if visit.document_id and not visit.known:
            self._stored[visit.document_id] = None
        return visit.record(fault)

    def reuse(
        self,
        records: tuple[RequestRecord, ...],
        before: Mapping[str, float],
        after: Mapping[str, float],
    ) -> Reuse:
        """From the engine's count of tokens that went through the model, where there is one; it
        needs no trust in the account of single documents, but wants no other client at work. What
        failed requests made it read, and what was read twice, is counted as well and would hide
        reuse: the documents' own account is the least that there was."""
        done = [record for record in records if record.document_tokens and not record.fault]
        tokens = sum(record.document_tokens or 0 for record in done)
        told = sum(record.reused_tokens or 0 for record in done)
        if READ_TOKENS in before and READ_TOKENS in after:
            computed = round(after[READ_TOKENS] - before[READ_TOKENS])
            return Reuse(tokens, max(tokens - computed, told), "engine counters")
        if any(record.reused_tokens is None for record in done):
            return Reuse(None, None, "nothing")
        return Reuse(tokens, told, "documents")

    async def forget(self) -> None:
        """Deletes the documents that this benchmark uploaded. Raises PeerError."""
        for document_id in list(self._stored):
            probe = self._probe()

            async def delete(probe: Journey = probe, path: str = document_id) -> None:
                await probe.json("delete", "DELETE", f"{PREFIX}/documents/{path}")

            fault = await travelled(probe, delete(), 60.0)
            if fault is not None and fault.code != "not_found":
                raise PeerError(f"Document {document_id} could not be deleted: {fault.message}")
            del self._stored[document_id]

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()

    def _probe(self) -> Journey:
        nothing = LoadRequest("probe", "", "", (), 0, "short", 0)
        return Journey(self._client, nothing, 0.0, Clock())
