"""One run as a report sees it: its letter, what was asked of it, its samples and their times.

Reads the configuration that `fineprint eval run` writes; every other module of this package asks
here, none looks into a configuration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from eval.errors import RunError
from eval.metrics import sample_scores, summarise
from eval.metrics.timing import is_cold
from eval.reports.samples import SampleId, Samples, by_sample, median
from eval.runs.folder import Run, load_run
from eval.statistics import Estimate
from eval.types import SampleRecord

State = Literal["cold", "warm", "without"]
STATES: tuple[State, ...] = ("cold", "warm", "without")
STATE_NAMES: Mapping[State, str] = {
    "cold": "cold",
    "warm": "warm",
    "without": "no pages",
}
STATES_NOTE = (
    "Cold: document tokens were computed for the question, because pages that it needed were not "
    "there or because the mode gives the model text. Warm: all pages that it used were there. No "
    "pages: no model took part. The three never share a figure; P99 needs 100 samples."
)
OWN_MODES = ("evidence", "text", "dense", "bm25")
DRAWING = ("seed", "limit", "only", "lang", "min_tokens", "max_tokens")
"""Settings of a run that say which questions are drawn."""
_CONTROLS = ("gold", "random", "none")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A question set of a run; `sha256` is the whole digest."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Entry:
    """`place` counts from 0 and gives the colour; `letter` names the run in charts. `samples` have
    the scores that count in denominators: failed ones those of a wrong answer, and none where the
    mode gives nothing to score (a mode that never cites is not wrong in it). `planned` is how many
    questions the run was to ask, None when that is not recorded."""

    place: int
    name: str
    run: Run
    samples: Samples
    summary: Mapping[str, Any]
    planned: int | None

    @property
    def letter(self) -> str:
        """A, B, … Z, AA, AB, …"""
        high, low = divmod(self.place, 26)
        return (chr(64 + high) if high else "") + chr(65 + low)

    @property
    def label(self) -> str:
        """Letter and name, as tables head their columns."""
        return f"{self.letter} {self.name}"

    @property
    def mode(self) -> str:
        """What was run."""
        return str(self.run.config.get("mode", "unknown"))

    @property
    def model(self) -> str:
        """What wrote the answers; empty for a mode without a model."""
        engine = self.settings
        return str(engine.get("model") or engine.get("peer_model") or "")

    @property
    def switches(self) -> dict[str, str]:
        """The switches that differ from the mode's defaults, as text."""
        return {name: _plain(v) for name, v in self.run.config.get("switches", {}).items()}

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the mode ran on: model, device, precision, block size and the like."""
        found: Mapping[str, Any] = self.run.config.get("engine", {})
        return found

    @property
    def data(self) -> tuple[DataFile, ...]:
        """The question sets, in the order given."""
        return tuple(
            DataFile(str(file.get("name")), str(file.get("sha256")))
            for file in self.run.config.get("data", ())
        )

    @property
    def drawn(self) -> str:
        """Digest of the questions and documents that were to be asked."""
        return str(self.run.config.get("sample", {}).get("sha256", ""))

    @property
    def partial(self) -> str:
        """ "40 of 100" for a run that is not finished, else empty."""
        if self.run.complete:
            return ""
        return f"{len(self.samples)} of {self.planned if self.planned is not None else 'unknown'}"

    @property
    def progress(self) -> str:
        """How many questions have a record, and of how many when some are missing."""
        return f"partial: {self.partial}" if self.partial else str(len(self.samples))

    @property
    def eligible(self) -> bool:
        """Whether it could be a default: a mode of our own, with evidence as retrieval finds it."""
        return self.mode in OWN_MODES and self.switches.get("evidence") not in _CONTROLS

    @property
    def records(self) -> tuple[SampleRecord, ...]:
        """The samples in the order asked."""
        return tuple(self.samples.values())


def open_entries(folders: Sequence[Path], *, seed: int = 0) -> list[Entry]:
    """The runs of the folders, in order. Raises RunError for a folder without a run, one given
    twice, or a run without any record."""
    seen: dict[Path, Path] = {}
    runs = []
    for folder in folders:
        real = folder.resolve()
        if real in seen:
            raise RunError(f"{folder} is given twice. Name each run once.")
        seen[real] = folder
        runs.append(load_run(folder))
    for run in runs:
        if not run.records:
            raise RunError(
                f"{run.folder} has no records yet: nothing was asked. Run the same fineprint eval "
                "run command again, or leave this folder out."
            )
    names = _names(runs)
    return [entry_of(run, place, names[place], seed=seed) for place, run in enumerate(runs)]


def entry_of(run: Run, place: int, name: str, *, seed: int = 0) -> Entry:
    """A run at its place of the legend."""
    summary = summarise(run.records, seed=seed)
    empty = {key for key, value in summary.items() if value is None}
    scored = [
        replace(record, scores=_blanked(sample_scores(record), empty)) for record in run.records
    ]
    planned = run.config.get("sample", {}).get("questions")
    return Entry(
        place=place,
        name=name,
        run=run,
        samples=by_sample(scored),
        summary=summary,
        planned=planned if isinstance(planned, int) else None,
    )


def state_of(record: SampleRecord) -> State | None:
    """In which state of the cache a sample was answered; None without a first token."""
    if record.reply is None or record.reply.timings.ttft_ms is None:
        return None
    cold = is_cold(record)
    if cold:
        return "cold"
    # A reply whose phrasing was dropped has no token counts, but its engine did use pages.
    idle = record.reply.finish_reason == "quote" and not record.reply.usage.cached_tokens
    return "without" if cold is None or idle else "warm"


def first_token_times(
    entry: Entry, state: State, over: Sequence[SampleId] | None = None
) -> list[tuple[SampleId, float]]:
    """Times to the first token, milliseconds, of the samples in one state."""
    chosen = entry.samples if over is None else over
    found = []
    for sample in chosen:
        record = entry.samples[sample]
        if state_of(record) == state and record.reply and record.reply.timings.ttft_ms is not None:
            found.append((sample, record.reply.timings.ttft_ms))
    return found


def median_time(times: Sequence[tuple[SampleId, float]]) -> Estimate | None:
    """The median with its 95% interval over documents."""
    return median([ms for _, ms in times], [sample[0] for sample, _ in times])


def first_question_time(entry: Entry, over: Sequence[SampleId]) -> Estimate | None:
    """Median time to the first token of the questions whose pages had to be read; of those that
    used no pages where a run has none of the first, of warm ones where it has neither."""
    for state in ("cold", "without", "warm"):
        if times := first_token_times(entry, state, over):
            return median_time(times)
    return None


def total_time(entry: Entry, over: Sequence[SampleId]) -> Estimate | None:
    """Median time of the whole answer, milliseconds, over all states."""
    times = [
        (sample, reply.timings.total_ms)
        for sample in over
        if (reply := entry.samples[sample].reply) is not None
    ]
    return median_time(times)


def find_entry(entries: Sequence[Entry], name: str) -> Entry:
    """The run of that name or letter. Raises RunError that lists those there are."""
    for entry in entries:
        if name in (entry.name, entry.letter, str(entry.run.folder)):
            return entry
    known = ", ".join(entry.label for entry in entries)
    raise RunError(f"No run is called {name!r}. Give --baseline a letter or name of: {known}.")


def _blanked(scores: Mapping[str, float | None], empty: set[str]) -> dict[str, float | None]:
    return {name: None if name in empty else value for name, value in scores.items()}


def _names(runs: Sequence[Run]) -> list[str]:
    """Folder names, with as much of the path before them as tells them apart."""
    parts = [run.folder.resolve().parts for run in runs]
    names = []
    for mine in parts:
        depth = 1
        while depth < len(mine) and sum(p[-depth:] == mine[-depth:] for p in parts) > 1:
            depth += 1
        names.append("/".join(mine[-depth:]))
    return names


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
