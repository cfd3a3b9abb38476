"""Reads JSON files of any size one record at a time: JSON lines, a list, or a list inside an
object.

Never holds more than one record, also when the whole file is one line. Knows no form of question
sets. Line ends are "\\n" or "\\r\\n" only: a text may hold U+2028, which Python's text mode would
take for one.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import ijson  # type: ignore[import-untyped]

from eval.datasets.places import AGAIN, Fields, Place
from eval.errors import DatasetError

_PIECE = 1 << 16
_MAX_DEPTH = 64
"""Question sets nest eight deep at most; a file of brackets alone must not fill the memory."""
_ENCODING = "Save it again as UTF-8"


class _LineReader:
    """Gives a parser the bytes of a file, at most one line at a time, so that `line` is the line
    in which a fault was found."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._ended = True
        self.line = 0
        if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            file.seek(0)

    def read(self, size: int = _PIECE) -> bytes:
        if size == 0:
            return b""
        piece = self._file.readline(_PIECE)
        if piece:
            self.line += self._ended
            self._ended = piece.endswith(b"\n")
        return piece


def json_lines(path: Path) -> Iterator[Fields]:
    """The objects of a JSON lines file; empty lines are skipped. Raises DatasetError."""
    with _open(path) as file:
        for number, raw in enumerate(file, start=1):
            if number == 1:
                raw = raw.removeprefix(codecs.BOM_UTF8)
            if not raw.strip():
                continue
            place = Place(path, number)
            value = _decode(raw, place)
            del raw  # the text may have millions of characters: one copy is enough
            if not isinstance(value, dict):
                raise place.error("the line is no JSON object", "Write one object a line")
            yield Fields(place, value)


def elements(path: Path, key: str | None) -> Iterator[Fields]:
    """The objects of the list under `key` of the file's object, or of the file's list when `key`
    is None. Raises DatasetError, also for what follows the list."""
    with _open(path) as file:
        reader = _LineReader(file)
        events = _events(path, reader)
        seen = False
        for depth, event, value in events:
            inside = depth == 0 if key is None else depth == 1 and value == key
            if key is None and inside and event == "start_array":
                seen = True
                yield from _objects(path, reader, events, depth=1)
            elif key is not None and inside and event == "map_key":
                seen = True
                if next(events)[1] != "start_array":
                    raise Place(path, reader.line).error(f'"{key}" is no list')
                yield from _objects(path, reader, events, depth=2)
        if not seen:
            raise Place(path).error(f'there is no list "{key}"' if key else "it holds no list")


def member(path: Path, key: str) -> Fields:
    """The object under `key` of the file's object. Raises DatasetError when there is none."""
    with _open(path) as file:
        reader = _LineReader(file)
        events = _events(path, reader)
        for depth, event, value in events:
            if depth == 1 and event == "map_key" and value == key:
                built = _build(next(events), events)
                if isinstance(built, dict):
                    return Fields(Place(path, reader.line), built, key)
                break
    raise Place(path).error(f'there is no object "{key}"')


def first_keys(path: Path, lists: frozenset[str]) -> tuple[frozenset[str], bool]:
    """The keys of the first object of a file, and whether the file is a list of objects.

    For an object with one of `lists` as a list, reading stops there. Raises DatasetError for a
    file that is empty or no JSON.
    """
    try:
        return _streamed_keys(path, lists)
    except DatasetError as error:
        # Python writes NaN, which is no JSON: a line that Python's reader takes is good enough.
        try:
            return frozenset(next(json_lines(path)).values), False
        except (DatasetError, StopIteration):
            raise error from None


def _streamed_keys(path: Path, lists: frozenset[str]) -> tuple[frozenset[str], bool]:
    keys: set[str] = set()
    listed = False
    with _open(path) as file:
        events = _events(path, _LineReader(file), multiple_values=True)
        for depth, event, value in events:
            if depth == 0 and event == "start_array":
                listed = True
            if depth == 1 + listed and event == "map_key":
                keys.add(value)
                if value in lists and next(events)[1] == "start_array":
                    break
            if depth == listed and event == "end_map":
                break
    return frozenset(keys), listed


_Event = tuple[int, str, Any]
"""Depth of the value that the event belongs to, ijson's name of the event, its value."""


def _events(path: Path, reader: _LineReader, multiple_values: bool = False) -> Iterator[_Event]:
    depth = 0
    try:
        for event, value in ijson.basic_parse(
            reader, buf_size=_PIECE, use_float=True, multiple_values=multiple_values
        ):
            if event in ("end_map", "end_array"):
                depth -= 1
            # A key belongs to the object that is open; its value is one deeper.
            yield depth, event, value
            if event in ("start_map", "start_array"):
                depth += 1
                if depth > _MAX_DEPTH:
                    raise Place(path, reader.line).error("the JSON is nested too deeply", AGAIN)
    except (ijson.JSONError, ValueError) as error:
        raise _torn(path, reader.line, str(error)) from error


def _torn(path: Path, line: int, message: str) -> DatasetError:
    if line == 0:
        return Place(path).error("the file is empty", AGAIN)
    reason = message.removeprefix("b'").partition("\n")[0].partition("\\n")[0]
    if "UTF8" in reason:
        return Place(path, line).error("the file is not UTF-8", _ENCODING)
    if "EOF" in reason:
        return Place(path, line).error("the JSON ends in the middle", AGAIN)
    return Place(path, line).error(f"the JSON is broken ({reason.strip('. ')})", AGAIN)


def _objects(
    path: Path, reader: _LineReader, events: Iterator[_Event], depth: int
) -> Iterator[Fields]:
    """The objects of an open list up to its end; `depth` is that of its elements."""
    for event in events:
        if event[0] == depth - 1:
            return
        built = _build(event, events)
        if not isinstance(built, dict):
            raise Place(path, reader.line).error("an element of the list is no object")
        yield Fields(Place(path, reader.line), built)


def _build(first: _Event, events: Iterator[_Event]) -> Any:
    """The value that begins with the event `first`."""
    builder = ijson.ObjectBuilder()
    depth, event, value = first
    builder.event(event, value)
    if event in ("start_map", "start_array"):
        for at, event, value in events:
            builder.event(event, value)
            if at == depth:
                break
    return builder.value


def _decode(raw: bytes, place: Place) -> Any:
    try:
        return json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise place.error("the line is not UTF-8", _ENCODING) from error
    except RecursionError as error:
        raise place.error("the JSON is nested too deeply", AGAIN) from error
    except ValueError as error:
        raise place.error(f"the line is no whole JSON value ({error})", AGAIN) from error


def _open(path: Path) -> IO[bytes]:
    if path.is_dir():
        inside = sorted(child.name for child in path.iterdir())
        names = ", ".join(inside[:8]) or "nothing"
        raise Place(path).error(f"this is a folder (it holds {names})", "Name a file in it")
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise Place(path).error("there is no such file", "Check the path") from error
    except OSError as error:
        raise Place(path).error(
            f"the file can't be opened ({error.strerror})", "Mend that"
        ) from error
