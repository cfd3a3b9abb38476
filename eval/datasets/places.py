"""Where in which file a value of a question set was read, for errors that name the place.

Knows no form: it looks up fields by name, checks their types and says what is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from eval.errors import DatasetError

_SURROGATE = re.compile("[\ud800-\udfff]")
AGAIN = "Download or copy the file again"
MEND = "Mend the file, or give the form that it is in with --form"


def sound(text: str) -> str:
    """`text` with halves of surrogate pairs, which can't be encoded, as U+FFFD; offsets stay."""
    return _SURROGATE.sub("\ufffd", text)


@dataclass(frozen=True, slots=True)
class Place:
    """A file and, where it is known, a line of it, counted from 1."""

    file: Path
    line: int | None = None

    def error(self, problem: str, remedy: str = MEND) -> DatasetError:
        """The error for a fault at this place; both sentences come without a full stop."""
        at = f"{self.file}" if self.line is None else f"{self.file}, line {self.line}"
        return DatasetError(
            f"{at}: {problem}. {remedy}.", details={"file": str(self.file), "line": self.line}
        )


@dataclass(frozen=True, slots=True)
class Fields:
    """A JSON object of a question set with the place that it was read from.

    Fields that nobody asks for are not looked at. `path` says where in the record the object is.
    """

    place: Place
    values: Mapping[str, Any]
    path: str = ""

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self._found(name) is not None

    def text(self, name: str, default: str | None = None) -> str:
        """A string that can be encoded. Raises DatasetError when it is something else, or is
        missing without a default."""
        value = self._value(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, "a string", value)
        return sound(value)

    def label(self, name: str, default: str) -> str:
        """A string or a number, as text: identifiers are written either way."""
        value = self._value(name, default)
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise self._wrong(name, "a string or a whole number", value)
        return sound(str(value))

    def integer(self, name: str, default: int | None = None) -> int:
        """A whole number; "12" is one too."""
        value = self._value(name, default)
        if isinstance(value, str) and value.strip().lstrip("-").isdecimal():
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(name, "a whole number", value)
        return value

    def flag(self, name: str) -> bool | None:
        """True, False, or None where the field is missing; "true" and "false" count as well."""
        value = self._found(name)
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if value is not None and not isinstance(value, bool):
            raise self._wrong(name, "true or false", value)
        return value

    def items(self, name: str) -> list[Any]:
        """A list of anything."""
        value = self._value(name, None)
        if not isinstance(value, list):
            raise self._wrong(name, "a list", value)
        return value

    def texts(self, name: str) -> list[str]:
        """A list of strings that can be encoded."""
        found = self.items(name)
        for value in found:
            if not isinstance(value, str):
                raise self._wrong(name, "a list of strings", value)
        return [sound(value) for value in found]

    def integers(self, name: str) -> list[int]:
        """A list of whole numbers."""
        found = self.items(name)
        for value in found:
            if isinstance(value, bool) or not isinstance(value, int):
                raise self._wrong(name, "a list of whole numbers", value)
        return found

    def pairs(self, name: str) -> list[tuple[int, int]]:
        """A list of [start, end] pairs."""
        found = []
        for value in self.items(name):
            sound = isinstance(value, list) and len(value) == 2
            if not sound or not all(type(part) is int for part in value):
                raise self._wrong(name, "a list of [start, end] pairs", value)
            found.append((value[0], value[1]))
        return found

    def mapping(self, name: str) -> Fields:
        """A JSON object."""
        value = self._value(name, None)
        if not isinstance(value, dict):
            raise self._wrong(name, "an object", value)
        return Fields(self.place, value, self._path(name))

    def rows(self, name: str) -> list[Fields]:
        """A list of JSON objects."""
        found = []
        for index, value in enumerate(self.items(name)):
            if not isinstance(value, dict):
                raise self._wrong(name, "a list of objects", value)
            found.append(Fields(self.place, value, f"{self._path(name)}[{index}]"))
        return found

    def error(self, problem: str, remedy: str = MEND) -> DatasetError:
        """The error for a fault in this object."""
        return self.place.error(f"{self.path}: {problem}" if self.path else problem, remedy)

    def _found(self, name: str) -> Any:
        """The value; None where it is missing, null or NaN, which tables write for "nothing"."""
        value = self.values.get(name)
        return None if isinstance(value, float) and math.isnan(value) else value

    def _value(self, name: str, default: object) -> Any:
        value = self._found(name)
        if value is None:
            value = default
        if value is None:
            raise self.error(f'there is no "{name}"')
        return value

    def _path(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def _wrong(self, name: str, wanted: str, value: object) -> DatasetError:
        shown = repr(value)
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        return self.error(f'"{name}" has to be {wanted} and is {shown}')


def beside(fields: Fields, name: str, folder: str) -> None:
    """Raises DatasetError unless `name` stays below the folder it starts from: a question set from
    elsewhere must not make this program read, and send to a model's server, other files."""
    path = PurePath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name or not path.parts:
        problem = f"the file {name!r} is not below the folder of the {folder}"
        raise fields.error(problem, "Put it there, and write its name from there")
