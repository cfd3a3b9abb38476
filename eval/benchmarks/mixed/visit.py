"""One document on a Fineprint server: upload it, ask as soon as it takes questions, ask again when
it is read, and once more.

The first question is asked when the document is `askable`. If it was not completely read at that
moment, a second one is asked as soon as it is, also while the first is still being answered; its
first text is the grounded one. The last question comes when both are answered. Progress is looked
at every 50 ms at first, later every fiftieth of the time waited (at most every second), so that
times which depend on it are up to 2% or 50 ms too long.
"""

from __future__ import annotations

import asyncio

from eval.benchmarks.mixed.doors import Hearing, Journey, Json, event_json
from eval.benchmarks.mixed.streams import read_events
from eval.benchmarks.mixed.types import AnswerRecord, Fault, PlantedQuestion, RequestRecord, Role

PREFIX = "/api/v1"
POLL_S, LONGEST_POLL_S, POLL_SHARE = 0.05, 1.0, 0.02


class Visit:
    """The journey of one document. `known`: the server had it before; `document_id` is empty until
    the upload was accepted."""

    def __init__(self, journey: Journey) -> None:
        self.journey = journey
        self.document_id = ""
        self.known = False
        self._read_before_asking = False
        self._found: Json = {}
        self._now: Json = {}

    async def story(self) -> None:
        """From the upload to the last answer. Raises RequestFailed, alone or in a group."""
        journey = self.journey
        first, second, third = journey.request.questions
        await self._upload()
        while not self._now["askable"]:
            await self._look("askable")
        journey.mark("askable")
        if self._is_read():
            self._read_before_asking = True
            journey.mark("read_complete")
            await self._answer("any", first, ("first_text", "grounded_text"))
        else:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._answer("any", first, ("first_text",)))
                group.create_task(self._grounded(second))
        journey.mark("warm_asked")
        warm = await self._answer("warm", third, ("warm_text",))
        if warm.usage.get("read_tokens") != 0:
            # Pages had to make room meanwhile: the answer is one, but not a warm one.
            del journey.marks["warm_text"]
        journey.mark("done")
        self._now = await journey.json("done", "GET", self._path)

    def record(self, fault: Fault | None) -> RequestRecord:
        """What became of it."""
        total: int | None = self._now.get("total_tokens")
        computed = self._computed() if fault is None else None
        return RequestRecord(
            request_id=self.journey.request.request_id,
            kind=self.journey.request.kind,
            planned_tokens=self.journey.request.tokens,
            status="done" if fault is None else "failed",
            timeline=dict(self.journey.marks),
            answers=tuple(self.journey.answers),
            fault=fault,
            document_tokens=total,
            computed_tokens=computed,
            reused_tokens=None if computed is None or total is None else max(total - computed, 0),
            known=self.known,
            server_timings={
                name: value
                for name, value in self._now.get("timings", {}).items()
                if value is not None
            },
        )

    @property
    def _path(self) -> str:
        return f"{PREFIX}/documents/{self.document_id}"

    async def _upload(self) -> None:
        journey, request = self.journey, self.journey.request
        journey.mark("sent")
        # Named by its request, found by its content: the same text again is the same document.
        file = (f"{request.request_id}.txt", request.document.encode(), "text/plain")
        self._found = self._now = await journey.json(
            "upload", "POST", f"{PREFIX}/documents", files={"file": file}
        )
        journey.mark("accepted")
        self.document_id = str(self._now["id"])
        self.known = bool(self._now["duplicate"])

    async def _look(self, stage: str) -> None:
        """Waits a little and gets the document's state. Raises RequestFailed when its ingestion
        ended without success."""
        journey = self.journey
        waited_s = (journey.clock.now_ms() - journey.marks["accepted"]) / 1000
        await asyncio.sleep(min(max(POLL_S, POLL_SHARE * waited_s), LONGEST_POLL_S))
        self._now = await journey.json(stage, "GET", self._path)
        if self._now["status"] in ("failed", "cancelled"):
            error = self._now.get("error") or {}
            code = str(error.get("code", self._now["status"]))
            raise journey.fail(stage, code, str(error.get("message", "The ingestion ended.")))

    def _is_read(self) -> bool:
        """Whether all of it was read; one that is read on demand only never is."""
        complete = bool(self._now["status"] == "completed")
        if complete and self._now["ready_tokens"] < self._now["total_tokens"]:
            warnings = self._now.get("warnings") or [{"message": "It was not read ahead."}]
            raise self.journey.fail("read_complete", "read_on_demand", warnings[-1]["message"])
        return complete

    async def _grounded(self, question: PlantedQuestion) -> None:
        while not self._is_read():
            await self._look("read_complete")
        self.journey.mark("read_complete")
        await self._answer("grounded", question, ("grounded_text",))

    async def _answer(
        self, role: Role, question: PlantedQuestion, marks: tuple[str, ...]
    ) -> AnswerRecord:
        journey = self.journey
        hearing = Hearing(journey, role, marks)
        body = {"question": question.text, "document_ids": [self.document_id], "stream": True}
        final: Json | None = None
        async with journey.reply(role, "POST", f"{PREFIX}/answers", json=body) as response:
            async for event in read_events(response.aiter_raw()):
                if event.name == "answer.delta":
                    piece = event_json(role, event)
                    hearing.hear(str(piece["text"]), str(piece["kind"]))
                elif event.name == "answer.completed":
                    final = event_json(role, event)
                elif event.name == "error":
                    fault = event_json(role, event)
                    raise journey.fail(role, str(fault["code"]), str(fault["message"]))
        if final is None:
            raise journey.fail(role, "stream_ended", "The stream ended before its last event.")
        return hearing.record(
            question.expected,
            status=str(final["status"]),
            finish_reason=str(final["finish_reason"]),
            timings=final["timings"],
            usage=final["usage"],
        )

    def _computed(self) -> int | None:
        """Document tokens that went through the model for this request, as the server tells; None
        when it does not."""
        before, after = self._found.get("read"), self._now.get("read")
        if after is None:
            return None
        asked = sum(int(str(answer.usage.get("read_tokens", 0))) for answer in self.journey.answers)
        total = int(self._now["total_tokens"])
        if not self.known:
            computed = min(int(after["computed_tokens"]) + asked, total)
            # A question on an unread document lets the engine read ahead as well, which stands in
            # nobody's account: less than all of it says nothing then.
            told = computed == total or self._read_before_asking
            return computed if told else None
        there = int(self._found["ready_tokens"])
        again = 0 if before is None else after["computed_tokens"] - before["computed_tokens"]
        return min(max(total - there, asked, int(again)), total)
