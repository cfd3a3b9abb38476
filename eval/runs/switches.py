"""Switches of a run: what `--switch name=value` may say in each mode.

Every field of AskOptions is one, so a new switch of the product is a new one here. Values are
checked before anything is opened.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from app.settings import BlockCuts, KVFormat, LinearFormat, Precision, Reading
from app.types import AskOptions
from eval.errors import BadSwitch
from eval.runs.material import Source
from eval.types import Mode

AnswerKind = Literal["checked", "free"]
PeerContext = Literal["retrieved", "whole"]

_BOOLEANS = {"on": True, "off": False, "true": True, "false": False, "1": True, "0": False}


@dataclass(frozen=True, slots=True)
class RunSwitches:
    """Switches of this package.

    `answer`: `checked` is the product's answer (in dense and peer: the model's words with figures,
    dates, clause numbers and names looked up in what the model was given; those that fail are
    marked); `free` is what the model writes, unchecked. `evidence`: see `eval.runs.material`.
    `nll`: score the gold answer. `refusal_hint`: tell a model that answers freely what to write
    when the text holds no answer. `context`: what a peer is given. The rest is the engine's; None
    leaves it to the settings.
    """

    answer: AnswerKind = "checked"
    evidence: Source = "retrieved"
    nll: bool = True
    refusal_hint: bool = True
    context: PeerContext = "retrieved"
    block_tokens: int | None = None
    block_cuts: BlockCuts | None = None
    reading: Reading | None = None
    precision: Precision | None = None
    linear_format: LinearFormat | None = None
    kv_format: KVFormat | None = None
    threads: int | None = None


@dataclass(frozen=True, slots=True)
class Switches:
    """Every switch of one run. `given` holds those that differ from the mode's defaults."""

    ask: AskOptions
    run: RunSwitches
    given: Mapping[str, object]
    resolved: Mapping[str, object]

    def engine_settings(self) -> dict[str, object]:
        """Overrides of the settings by name."""
        return {name: getattr(self.run, name) for name in _ENGINE}


_ENGINE = (
    "reading",
    "block_tokens",
    "block_cuts",
    "precision",
    "linear_format",
    "kv_format",
    "threads",
)
_ASK = tuple(field.name for field in dataclasses.fields(AskOptions))
_APPLY: dict[Mode, tuple[str, ...]] = {
    "bm25": ("quotes", "closeness", "evidence"),
    "evidence": (*_ASK, "answer", "evidence", "nll", "refusal_hint", *_ENGINE),
    "text": (
        *(name for name in _ASK if name != "pages"), "answer", "evidence", "nll", "refusal_hint",
        *_ENGINE,
    ),
    "dense": (
        "max_tokens", "answer", "nll", "refusal_hint", "precision", "linear_format", "threads",
    ),
    "peer": ("max_tokens", "answer", "evidence", "evidence_tokens", "refusal_hint", "context"),
}  # fmt: skip
_LIMITS: dict[str, tuple[float, float]] = {
    "quotes": (1, 100),
    "closeness": (0, 1),
    "max_tokens": (1, 100_000),
    "evidence_tokens": (1, 1_000_000),
    "list_limit": (1, 10_000),
    "block_tokens": (64, 1_000_000),
    "threads": (1, 1024),
}


def defaults(mode: Mode) -> tuple[AskOptions, RunSwitches]:
    """What a mode does without a switch."""
    ask = AskOptions(pages=False) if mode == "text" else AskOptions()
    return ask, RunSwitches(answer="free" if mode in ("dense", "peer") else "checked")


def parse_switches(mode: Mode, assignments: Sequence[str]) -> Switches:
    """The switches of `name=value` texts; the last one of a name counts.

    Raises BadSwitch for a name or value that the mode does not know, listing those it does.
    """
    ask, run = defaults(mode)
    changes: dict[str, object] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        name = name.strip()
        if not equals:
            raise BadSwitch(f"--switch {assignment}: write name=value. {_listing(mode)}")
        if name not in _APPLY[mode]:
            near = difflib.get_close_matches(name, _APPLY[mode], n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise BadSwitch(f"Mode {mode} has no switch {name!r}.{hint} {_listing(mode)}")
        changes[name] = _value(name, value.strip())
    before = _values(ask, run)
    ask = dataclasses.replace(ask, **{n: v for n, v in changes.items() if n in _ASK})  # type: ignore[arg-type]
    run = dataclasses.replace(run, **{n: v for n, v in changes.items() if n not in _ASK})  # type: ignore[arg-type]
    if run.evidence == "none" and run.answer == "checked" and mode in ("evidence", "text", "bm25"):
        raise BadSwitch("evidence=none leaves nothing to quote: add --switch answer=free.")
    after = _values(ask, run)
    return Switches(
        ask=ask,
        run=run,
        given={name: after[name] for name in after if after[name] != before[name]},
        resolved={name: after[name] for name in sorted(_APPLY[mode])},
    )


def _values(ask: AskOptions, run: RunSwitches) -> dict[str, object]:
    return dataclasses.asdict(ask) | dataclasses.asdict(run)


def _listing(mode: Mode) -> str:
    entries = [f"{name}={_choices(name)}" for name in _APPLY[mode]]
    return f"Switches of mode {mode}: {', '.join(entries)}."


def _type(name: str) -> Any:
    hints = get_type_hints(AskOptions if name in _ASK else RunSwitches)
    wanted = hints[name]
    if get_origin(wanted) is not Literal and (inner := get_args(wanted)):
        wanted = next(one for one in inner if one is not type(None))
    return wanted


def _choices(name: str) -> str:
    wanted = _type(name)
    if wanted is bool:
        return "on|off"
    if get_origin(wanted) is Literal:
        return "|".join(str(choice) for choice in get_args(wanted))
    low, high = _LIMITS[name]
    return f"{low} to {high}"


def _value(name: str, text: str) -> object:
    wanted = _type(name)
    if wanted is bool:
        if text.lower() in _BOOLEANS:
            return _BOOLEANS[text.lower()]
    elif get_origin(wanted) is Literal:
        for choice in get_args(wanted):
            if str(choice) == text:
                return choice
    else:
        number = _number(wanted, text)
        low, high = _LIMITS[name]
        if number is not None and low <= number <= high:
            return number
    raise BadSwitch(f"--switch {name}={text}: the value must be {_choices(name)}.")


def _number(kind: Callable[[str], float], text: str) -> float | None:
    try:
        return kind(text)
    except ValueError:
        return None
