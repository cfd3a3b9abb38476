"""`fineprint settings`: every setting, what it is now and what it means."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from app.cli.reporting import JsonOption, emit, reporting

if TYPE_CHECKING:
    from app.settings import Settings

WIDTH = 96
MARGIN = "    "

PASSWORD = re.compile(
    r"(?<=://)([^/@:]*):.*(?=@)|([?&]\w*(?:password|key|token)\w*)=[^&]*", re.IGNORECASE
)
"""In a URL: behind the user's name, or among the options of a database."""
_LIST_OF_URLS = "_urls"


def command(
    changed: Annotated[
        bool, typer.Option("--changed", help="Only those that are not as they come.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the settings: variable, value now and meaning, without passwords."""
    from app.settings import load_settings

    with reporting(as_json):
        rows = [row for row in _rows(load_settings()) if row["changed"] or not changed]
    if as_json:
        emit({"settings": rows})
        return
    for row in rows:
        value = "none" if row["value"] is None else row["value"]
        typer.echo(f"{row['variable']}: {value}{' (changed)' if row['changed'] else ''}")
        meaning = textwrap.wrap(f"{row['meaning']} [{row['takes']}]", WIDTH - len(MARGIN))
        typer.echo("\n".join(MARGIN + line for line in meaning))
    if not rows:
        typer.echo("All settings are as they come.")


def _rows(settings: Settings) -> list[dict[str, object]]:
    from app.settings import PREFIX

    rows: list[dict[str, object]] = []
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        usual = field.get_default(call_default_factory=True)
        rows.append(
            {
                "variable": PREFIX + name.upper(),
                "value": shown(value, several=name.endswith(_LIST_OF_URLS)),
                "default": shown(usual, several=name.endswith(_LIST_OF_URLS)),
                "changed": value != usual,
                "meaning": " ".join((field.description or "").split()),
                "takes": _takes(field.annotation),
            }
        )
    return rows


def _takes(annotation: object) -> str:
    """The values of a field in words: its choices, or its type."""
    kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
    if kinds and all(isinstance(kind, str) for kind in kinds):
        return ", ".join(kinds)
    if kinds:
        return _takes(kinds[0])
    return _WORDS[annotation]


_WORDS: Mapping[object, str] = {
    bool: "true or false", int: "whole number", float: "number", str: "text", Path: "path",
}  # fmt: skip


def shown(value: object, *, several: bool = False) -> object:
    """As JSON has it: numbers, truth and nothing as they are, all else as text in which three
    stars stand for a password. `several`: URLs with commas between them."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    parts = str(value).split(",") if several else [str(value)]
    return ",".join(PASSWORD.sub(_starred, part) for part in parts)


def _starred(found: re.Match[str]) -> str:
    return f"{found[2]}=***" if found[2] else f"{found[1]}:***"
