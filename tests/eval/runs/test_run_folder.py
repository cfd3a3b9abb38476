"""Records survive their trip through a folder, a torn line does not stop a run, and no run is mixed
with another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import StorageFull
from eval.errors import RunError
from eval.runs.folder import RunFolder, load_run
from eval.runs.records import record_fields, record_of
from eval.types import CitedSpan, Reply, ReplyTimings, ReplyUsage, SampleRecord

CONFIG = {"mode": "bm25", "switches": {"quotes": 3}, "data": [{"name": "a", "sha256": "00"}]}
ENVIRONMENT = {"processor": "some"}

_numbers = st.floats(allow_nan=False, allow_infinity=False)
_spans = st.tuples(st.integers(0, 10**6), st.integers(0, 10**6))
_replies = st.builds(
    Reply,
    status=st.sampled_from(["answered", "partial", "not_found"]),
    shown=st.text(),
    prediction=st.text(),
    timings=st.builds(ReplyTimings, ttft_ms=st.none() | _numbers, total_ms=_numbers),
    citations=st.lists(
        st.builds(
            CitedSpan,
            start=st.integers(0, 99),
            end=st.integers(0, 99),
            quote=st.text(),
            verified=st.booleans(),
        ),
        max_size=3,
    ).map(tuple),
    marked=st.lists(st.text(), max_size=3).map(tuple),
    hits=st.lists(_spans, max_size=3).map(tuple),
    nll=st.none() | _numbers,
    choice=st.none() | st.sampled_from("ABCD"),
    usage=st.builds(ReplyUsage, prompt_tokens=st.integers(0, 9)),
)
_records = st.builds(
    SampleRecord,
    qid=st.text(),
    doc_id=st.text(),
    dataset=st.text(),
    lang=st.sampled_from(["en", "zh"]),
    category=st.text(),
    answerable=st.booleans(),
    doc_chars=st.integers(0, 10**7),
    doc_tokens=st.none() | st.integers(0, 10**6),
    depth=st.none() | _numbers,
    status=st.sampled_from(["done", "failed", "unfit"]),
    error=st.text(),
    question=st.text(),
    gold=st.lists(st.text(), max_size=3).map(tuple),
    reply=st.none() | _replies,
    scores=st.dictionaries(st.text(), st.none() | _numbers, max_size=3),
)


def _record(qid: str, error: str = "") -> SampleRecord:
    return SampleRecord(
        qid, "d", "set", "zh", "", True, 10, None, 0.5, "failed" if error else "done", error,
        question="违约金是多少？\n\u2028", gold=("5%",),
    )  # fmt: skip


@settings(deadline=None)
@given(_records)
def test_a_record_survives_json(record: SampleRecord) -> None:
    # Surrogates can't be written as UTF-8 and never stand in a parsed text.
    line = json.dumps(record_fields(record), ensure_ascii=True)
    assert record_of(json.loads(line)) == record


def test_a_field_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="colour"):
        record_of({**record_fields(_record("1")), "colour": "red"})


def test_a_run_goes_on_where_it_was_left(tmp_path: Path) -> None:
    with RunFolder.open(tmp_path / "run", CONFIG, ENVIRONMENT) as folder:
        folder.add(_record("1"))
    assert not load_run(tmp_path / "run").complete
    with RunFolder.open(tmp_path / "run", CONFIG, {"processor": "another"}) as folder:
        assert set(folder.records) == {"1"}
        folder.add(_record("2"))
        folder.finish({"n": 2})
    run = load_run(tmp_path / "run")
    assert [record.qid for record in run.records] == ["1", "2"]
    assert run.records[0] == _record("1")
    assert run.complete and run.summary == {"n": 2}
    assert run.environment == ENVIRONMENT
    assert [session["environment"]["processor"] for session in run.sessions] == ["some", "another"]


def test_a_full_disk_is_told_and_keeps_what_was_there(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with RunFolder.open(tmp_path / "run", CONFIG, ENVIRONMENT) as folder:
        folder.add(_record("1"))
        folder._file.close()
        folder._file = open("/dev/full", "ab", buffering=0)  # noqa: SIM115
        with pytest.raises(StorageFull):
            folder.add(_record("2"))
    assert [record.qid for record in load_run(tmp_path / "run").records] == ["1"]


def test_what_is_no_folder_of_a_run_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="holds no run"):
        load_run(tmp_path / "file")
    (tmp_path / "run" / "run.json").mkdir(parents=True)
    with pytest.raises(RunError, match="can't be read"):
        load_run(tmp_path / "run")


@pytest.mark.parametrize("kept", [1, 40, -1])
def test_a_torn_last_line_is_dropped(tmp_path: Path, kept: int) -> None:
    with RunFolder.open(tmp_path, CONFIG, ENVIRONMENT) as folder:
        folder.add(_record("1"))
        folder.add(_record("2"))
    path = tmp_path / "records.jsonl"
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second[:kept])
    assert [record.qid for record in load_run(tmp_path).records] == ["1"]
    with RunFolder.open(tmp_path, CONFIG, ENVIRONMENT) as folder:
        assert set(folder.records) == {"1"}
        folder.add(_record("3"))
    assert [record.qid for record in load_run(tmp_path).records] == ["1", "3"]


def test_a_damaged_line_inside_is_named(tmp_path: Path) -> None:
    with RunFolder.open(tmp_path, CONFIG, ENVIRONMENT) as folder:
        folder.add(_record("1"))
        folder.add(_record("2"))
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"{}\n" + path.read_bytes())
    with pytest.raises(RunError, match="line 1"):
        load_run(tmp_path)


def test_the_last_record_of_a_question_counts(tmp_path: Path) -> None:
    with RunFolder.open(tmp_path, CONFIG, ENVIRONMENT) as folder:
        folder.add(_record("1", "timed out"))
        folder.add(_record("2"))
        folder.add(_record("1"))
    run = load_run(tmp_path)
    assert [(record.qid, record.status) for record in run.records] == [("1", "done"), ("2", "done")]


def test_another_configuration_is_refused_and_named(tmp_path: Path) -> None:
    with RunFolder.open(tmp_path, CONFIG, ENVIRONMENT):
        pass
    other = {**CONFIG, "switches": {"quotes": 1}}
    with pytest.raises(RunError, match=r"switches\.quotes was 3 and is now 1"):
        RunFolder.open(tmp_path, other, ENVIRONMENT)
    with RunFolder.open(tmp_path, other, ENVIRONMENT, restart=True) as folder:
        assert not folder.records


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    with (
        RunFolder.open(tmp_path, CONFIG, ENVIRONMENT),
        pytest.raises(RunError, match="Another process"),
    ):
        RunFolder.open(tmp_path, CONFIG, ENVIRONMENT)
    with RunFolder.open(tmp_path, CONFIG, ENVIRONMENT):
        pass


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(RunError, match=r"notes\.txt"):
        RunFolder.open(tmp_path, CONFIG, ENVIRONMENT)
    with pytest.raises(RunError, match="holds no run"):
        load_run(tmp_path)


def test_a_finished_run_that_is_asked_again_has_one_more_session_and_no_summary(
    tmp_path: Path,
) -> None:
    for source in ("first", "second", "third"):
        environment = {"source_sha256": source}
        with RunFolder.open(tmp_path, CONFIG, environment) as folder:
            if source == "second":
                folder.ask_again(environment)
                assert not load_run(tmp_path).complete
            folder.finish({"n": 0})
    told = [session["environment"]["source_sha256"] for session in load_run(tmp_path).sessions]
    assert told == ["first", "second"]
