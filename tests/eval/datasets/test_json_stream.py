from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.datasets.json_stream import elements, first_keys, json_lines, member
from eval.errors import DatasetError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
RECORDS = st.lists(st.dictionaries(st.text(max_size=4), VALUES, max_size=4), max_size=5)


@settings(max_examples=60, deadline=None)
@given(records=RECORDS, indent=st.sampled_from([None, 1]), ascii_only=st.booleans())
def test_streams_what_the_json_module_reads(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[dict[str, object]],
    indent: int | None,
    ascii_only: bool,
) -> None:
    path = tmp_path_factory.mktemp("stream") / "set.json"
    around = {"version": [{"data": 1}], "data": records, "after": {"data": [2]}}
    path.write_text(json.dumps(around, indent=indent, ensure_ascii=ascii_only), "utf-8")
    expected = json.loads(path.read_text("utf-8"))["data"]
    assert [fields.values for fields in elements(path, "data")] == expected
    path.write_text(json.dumps(records, indent=indent, ensure_ascii=ascii_only), "utf-8")
    assert [fields.values for fields in elements(path, None)] == expected


def test_lines_keep_separators_that_are_no_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    text = "one\u2028two\x85three\x0cfour"
    path.write_bytes(
        b"\xef\xbb\xbf" + json.dumps({"t": text}, ensure_ascii=False).encode() + b"\r\n\r\n{}\r\n"
    )
    assert [(f.place.line, f.values) for f in json_lines(path)] == [(1, {"t": text}), (3, {})]


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        (b'{"a": 1}\n{"a": 2', 2, "no whole JSON value"),
        (b'{"a": 1}\n\n[1]\n', 3, "no JSON object"),
        (b'{"a": 1}\n{"a": "\xff"}\n', 2, "not UTF-8"),
        (b"[" * 200_000, 1, "nested too deeply"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, content: bytes, line: int, words: str) -> None:
    path = tmp_path / "set.jsonl"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=words) as caught:
        list(json_lines(path))
    assert caught.value.details == {"file": str(path), "line": line}
    assert f"line {line}" in caught.value.message


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        (b'{"data": [\n{"a": 1},\n{"a": ', 3, "ends in the middle"),
        (b'{"data": [\n{"a": 1}\n{"a": 2}]}', 3, "the JSON is broken"),
        (b'{"data": [{"a": "\xff"}]}', 1, "not UTF-8"),
        (b'{"data": ' + b"[" * 200_000, 1, "nested too deeply"),
        (b'{"data": [1]}', 1, "no object"),
        (b'{"data": 1}', 1, "no list"),
        (b'{"data": []} rest', 1, "the JSON is broken"),
        (b'{"other": []}', None, 'no list "data"'),
        (b"", None, "empty"),
    ],
)
def test_a_broken_file_is_named(
    tmp_path: Path, content: bytes, line: int | None, words: str
) -> None:
    path = tmp_path / "set.json"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=words) as caught:
        list(elements(path, "data"))
    assert caught.value.details["line"] == line


def test_one_record_is_held_at_a_time_though_the_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    size, count = 400_000, 40
    with path.open("w", encoding="utf-8") as file:
        file.write('{"data": [')
        for number in range(count):
            file.write(("," if number else "") + json.dumps({"text": "x" * size}))
        file.write("]}")
    tracemalloc.start()
    try:
        seen = sum(1 for _ in elements(path, "data"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert seen == count
    assert peak < 6 * size < count * size


def test_finds_an_object_behind_a_list(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    path.write_text('{"documents": [{"labels": 1}], "labels": {"a": {"b": 2}}}', "utf-8")
    assert member(path, "labels").values == {"a": {"b": 2}}
    with pytest.raises(DatasetError, match='no object "documents"'):
        member(path, "documents")


def test_first_keys_of_each_layout(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    lists = frozenset({"data"})
    for content, keys, listed in [
        ('{"a": {"x": 1}, "b": [{"y": 1}]}\n{"c": 1}', {"a", "b"}, False),
        ('[{"a": 1, "b": {"z": 1}}, {"c": 1}]', {"a", "b"}, True),
        ('{"v": 1, "data": [{"q": 1}], "later": 1}', {"v", "data"}, False),
        ('{"a": NaN, "b": 1}\n', {"a", "b"}, False),
    ]:
        path.write_text(content, "utf-8")
        assert first_keys(path, lists) == (keys, listed)
