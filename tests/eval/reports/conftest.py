"""Runs on disk as `fineprint eval run` leaves them, with made-up but plausible replies."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from eval.metrics import failure_scores
from eval.metrics.names import METRICS
from eval.reports.assembly import assemble
from eval.reports.entries import Entry, open_entries
from eval.reports.page import html_page
from eval.runs.folder import RunFolder
from eval.types import CitedSpan, Reply, ReplyTimings, ReplyUsage, SampleRecord, Scores

WriteRun = Callable[..., Path]
OpenRuns = Callable[..., list[Entry]]

ENVIRONMENT: dict[str, Any] = {
    "versions": {"python": "3.11.9", "fineprint": "0.1.0", "torch": "2.11.0"},
    "system": "Linux-6.1",
    "processor": "Test CPU @ 2.0 GHz",
    "cores": 2,
    "memory_bytes": 24 * 2**30,
    "gpu": None,
    "git": {"revision": "0123456789abcdef0123456789abcdef01234567", "changed": False},
}
ENGINE: dict[str, Any] = {
    "chunk_chars": 1200,
    "model": "smollm2-135m-instruct",
    "fingerprint": "f00d",
    "device": "cpu",
    "precision": "bfloat16",
    "block_tokens": 512,
    "threads": None,
}


def config_of(mode: str = "evidence", questions: int = 40, **changes: Any) -> dict[str, Any]:
    """The configuration of a run, as `eval.runs.running` writes it."""
    base: dict[str, Any] = {
        "mode": mode,
        "switches": {},
        "resolved": {},
        "data": [{"name": "contracts.jsonl", "bytes": 9000, "sha256": "ab" * 32}],
        "form": None,
        "limit": questions,
        "seed": 0,
        "only": "all",
        "min_tokens": None,
        "max_tokens": None,
        "lang": None,
        "sample": {"questions": questions, "documents": 10, "sha256": "cd" * 32},
        "engine": {"chunk_chars": 1200} if mode == "bm25" else ENGINE,
    }
    return base | changes


def scores_of(**given: float | None) -> Scores:
    """Scores with only some of the metrics."""
    return dict.fromkeys((metric.name for metric in METRICS), None) | given


def record_of(
    number: int = 0,
    *,
    documents: int = 10,
    chance: random.Random | None = None,
    skill: float = 0.6,
    base_ms: float = 20.0,
    cold: bool = False,
    model: bool = True,
    **changes: Any,
) -> SampleRecord:
    """One answered question; `skill` is how often it cites the right place."""
    dice = chance or random.Random(number)
    document = number % documents
    answerable = dice.random() < 0.75
    hit = dice.random() < skill
    ttft = base_ms * dice.lognormvariate(0, 0.4) * (12 if cold else 1)
    gold = (f"{number + 3} days after delivery",) if answerable else ()
    tokens = 2_000 * 2 ** (document % 6)
    answered = hit if answerable else dice.random() < 0.4
    quote = f"The Supplier delivers within {number + 3} days."
    scores = scores_of(
        f1=dice.uniform(0.4, 1) if hit and answerable else dice.uniform(0, 0.4),
        em=float(hit and dice.random() < 0.3),
        unmarked_wrong_figures=0.0,
        unmarked_wrong_replies=0.0,
    )
    if answerable:
        scores |= {
            "rouge_l": dice.uniform(0.2, 0.9),
            "number_accuracy": float(hit),
            "citation_hit": float(hit),
            "citation_verified": 1.0,
            "false_refusal": float(not answered),
            "recall_at_1": float(hit),
            "recall_at_5": float(hit or dice.random() < 0.5),
            "recall_at_10": 1.0,
            "answer_nll": dice.gauss(0.9 - 0.2 * skill, 0.2) if model else None,
        }
    else:
        scores["refusal_accuracy"] = float(not answered)
    fields: dict[str, Any] = {
        "qid": f"q{number}",
        "doc_id": f"doc{document}",
        "dataset": "contracts",
        "lang": "zh" if document % 3 == 0 else "en",
        "category": "delivery",
        "answerable": answerable,
        "doc_chars": 4 * tokens,
        "doc_tokens": tokens if model else None,
        "depth": dice.random() if answerable else None,
        "status": "done",
        "question": "交货期是多少天？" if document % 3 == 0 else "When is delivery due?",
        "gold": gold,
        "reply": Reply(
            status="answered" if answered else "not_found",
            shown=f"“{quote}” [p. 3]",
            prediction=quote,
            timings=ReplyTimings(
                ttft_ms=ttft,
                total_ms=ttft + 900,
                queue_ms=3 if model else 0,
                read_ms=0.7 * ttft if cold else 0,
                decode_ms=500 * dice.random() if model else 0,
            ),
            citations=(CitedSpan(10, 10 + len(quote), quote, True),),
            hits=((0, 100),),
            nll=scores["answer_nll"],
            usage=ReplyUsage(
                prompt_tokens=300 if model else 0,
                cached_tokens=640 if model and not cold else 0,
                read_tokens=1024 if cold else 0,
                completion_tokens=30 if model else 0,
            ),
        ),
        "scores": scores,
    }
    return SampleRecord(**fields | changes)


def failed_record(number: int, *, status: str = "failed", error: str = "boom") -> SampleRecord:
    """A question without a reply."""
    done = record_of(number)
    scores = failure_scores(
        done.gold, done.lang, answerable=done.answerable, spans=done.depth is not None, choice=False
    )
    return record_of(number, status=status, error=error, reply=None, scores=scores)


@pytest.fixture(scope="session")
def writer() -> Callable[[Path], WriteRun]:
    """writer(folder) -> write_run for runs in that folder."""
    return lambda folder: functools.partial(_write, folder)


@pytest.fixture
def write_run(tmp_path: Path, writer: Callable[[Path], WriteRun]) -> WriteRun:
    """write_run(name, records, finish=, environment=, **config) -> folder."""
    return writer(tmp_path / "runs")


def _write(
    parent: Path,
    name: str,
    records: list[SampleRecord],
    *,
    finish: bool = True,
    environment: Mapping[str, Any] = ENVIRONMENT,
    **config: Any,
) -> Path:
    folder = parent / name
    with RunFolder.open(folder, config_of(**config), environment) as run:
        for record in records:
            run.add(record)
        if finish:
            run.finish({"n": len(records)})
    return folder


@pytest.fixture(scope="session")
def some_records() -> Callable[..., list[SampleRecord]]:
    """some_records(seed, n, **record_of's) -> records of one run, every fourth question cold."""

    def made(seed: int = 1, n: int = 40, **given: Any) -> list[SampleRecord]:
        chance = random.Random(seed)
        model = given.get("model", True)
        return [
            record_of(number, chance=chance, cold=model and number % 4 == 0, **given)
            for number in range(n)
        ]

    return made


@pytest.fixture(scope="session")
def one_record() -> Callable[..., SampleRecord]:
    """one_record(number, **changes)."""
    return record_of


@pytest.fixture(scope="session")
def one_failure() -> Callable[..., SampleRecord]:
    """one_failure(number, status=, error=)."""
    return failed_record


@pytest.fixture(scope="session")
def open_runs() -> OpenRuns:
    """open_runs(folder, …) -> entries."""

    def opened(*folders: Path) -> list[Entry]:
        return open_entries(list(folders))

    return opened


@pytest.fixture(scope="session")
def evil() -> str:
    """Text that would run, close or expand something if it were not escaped."""
    markup = '<script>alert(1)</script><img src="x" onerror="alert(2)">'
    return markup + "\"'</style></svg>{{ 7*7 }}{% raw %}"


@pytest.fixture(scope="session")
def hostile_page(
    evil: str,
    writer: Callable[[Path], WriteRun],
    tmp_path_factory: pytest.TempPathFactory,
    open_runs: OpenRuns,
    some_records: Callable[..., list[SampleRecord]],
) -> str:
    """A page of three runs with hostile texts in every field that is shown."""
    write = writer(tmp_path_factory.mktemp("hostile"))
    records = some_records(2)
    wrong = record_of(4).scores | {"citation_hit": 0.0}
    records[4] = record_of(
        4, qid=evil, question=evil, gold=(evil,), category=evil, scores=wrong, answerable=True
    )
    records[5] = failed_record(5, error=f"ValueError: {evil}")
    entries = open_runs(
        write("evidence", some_records(1)),
        write('x" onmouseover="alert(3)', records, mode="text", switches={"a": evil}),
        write("<b>检索</b>", some_records(3, model=False), mode="bm25"),
    )
    return html_page(assemble(entries, entries[0], title=f"Title {evil}"))
