"""Which runs a report compares: what was asked, of what, on what. And what makes them unlike."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from eval.reports.entries import DRAWING, Entry
from eval.reports.types import Cell, Row, Table

_GIB = 2**30
_DEFAULTS = {"limit": 0, "seed": 0, "only": "all"}


def runs_table(entries: Sequence[Entry]) -> Table:
    """One column a run."""
    facts: tuple[tuple[str, Callable[[Entry], str]], ...] = (
        ("mode", lambda entry: entry.mode),
        ("model", lambda entry: entry.model or "none"),
        ("switches", _switches),
        ("data", _data),
        ("questions", lambda entry: entry.progress),
        ("drawn by", _drawn),
        ("hardware", lambda entry: hardware(entry.run.environment)),
        ("versions", lambda entry: versions(entry.run.environment)),
        ("git revision", lambda entry: revision(entry.run.environment)),
        ("started", lambda entry: _started(entry)),
        ("command", _command),
        ("settings", _settings),
    )
    return Table(
        title="Runs",
        corner="run",
        columns=tuple(entry.label for entry in entries),
        warnings=tuple(unlike(entries)),
        words=True,
        rows=tuple(
            Row(label, tuple(Cell(value(entry)) for entry in entries))
            for label, value in facts
            if any(value(entry) for entry in entries)
        ),
    )


def unlike(entries: Sequence[Entry]) -> Iterator[str]:
    """A sentence for each thing that a reader must know before comparing the columns."""
    for entry in entries:
        if entry.partial:
            yield f"{entry.label} is not finished: partial, {entry.partial} questions."
    aspects: tuple[tuple[str, Callable[[Entry], str]], ...] = (
        ("Made from other data than the rest", lambda e: repr(sorted(f.sha256 for f in e.data))),
        ("Drawn by another seed or other limits than the rest", _drawn),
        ("Asks other questions than the rest", lambda e: e.drawn),
        ("Made on other hardware than the rest", lambda e: hardware(e.run.environment)),
        ("Made with another git revision than the rest", lambda e: revision(e.run.environment)),
        ("Uses another model than the rest", lambda e: e.model),
    )
    for what, value in aspects:
        yield from _minority(entries, what, value)
    changed = [e.label for e in entries if e.run.environment.get("git", {}).get("changed")]
    if changed:
        yield (
            "Made from a changed source tree, so the revision does not tell all: "
            f"{_listed(changed)}."
        )


def _minority(entries: Sequence[Entry], what: str, value: Callable[[Entry], str]) -> Iterator[str]:
    """Names the runs that differ from what most (or else the first) have."""
    values = [value(entry) for entry in entries]
    # A run without a model is no exception among runs that have one.
    given = [v for v in values if v]
    if len(set(given)) < 2:
        return
    usual = Counter(given).most_common(1)[0][0]
    odd = [e.label for e, own in zip(entries, values, strict=True) if own and own != usual]
    yield f"{what}: {_listed(odd)}."


def _listed(labels: Sequence[str]) -> str:
    return ", ".join(labels)


def _switches(entry: Entry) -> str:
    return "\n".join(f"{name} = {v}" for name, v in sorted(entry.switches.items())) or "defaults"


def _data(entry: Entry) -> str:
    counts = Counter(record.dataset for record in entry.records)
    lines = [f"{file.name} (SHA-256 {file.sha256[:12] or 'not recorded'})" for file in entry.data]
    lines += [f"{name}: n = {count}" for name, count in sorted(counts.items())]
    return "\n".join(lines)


def _drawn(entry: Entry) -> str:
    config = entry.run.config
    return ", ".join(f"{name} {config[name]}" for name in DRAWING if config.get(name) is not None)


def hardware(environment: Mapping[str, Any]) -> str:
    memory = environment.get("memory_bytes")
    parts = [
        str(environment.get("processor") or "unknown processor"),
        f"{environment.get('cores', '?')} cores",
        f"{memory / _GIB:.0f} GiB" if isinstance(memory, int) else "",
    ]
    gpu = environment.get("gpu")
    if isinstance(gpu, Mapping):
        parts.append(f"{gpu.get('name')} ({gpu.get('memory_bytes', 0) / _GIB:.0f} GiB)")
    return ", ".join(part for part in parts if part)


def versions(environment: Mapping[str, Any]) -> str:
    versions = environment.get("versions")
    if not isinstance(versions, Mapping):
        return "not recorded"
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def revision(environment: Mapping[str, Any]) -> str:
    git = environment.get("git")
    if not isinstance(git, Mapping) or not git.get("revision"):
        return "not recorded"
    return f"{str(git['revision'])[:12]}{' + changes' if git.get('changed') else ''}"


def _started(entry: Entry) -> str:
    sessions = len(entry.run.sessions)
    started = entry.run.started.replace("T", " ")[:19] or "not recorded"
    return f"{started} UTC" + (f", in {sessions} sessions" if sessions > 1 else "")


def _command(entry: Entry) -> str:
    """The command that makes such a run, but for the folders of its files."""
    words = ["fineprint", "eval", "run", *(word for f in entry.data for word in ("--data", f.name))]
    words += ["--mode", entry.mode]
    for name in DRAWING:
        value = entry.run.config.get(name)
        if value not in (None, _DEFAULTS.get(name)):
            words += [f"--{name.replace('_', '-')}", str(value)]
    for setting in ("model", "endpoint", "peer_model"):
        if entry.settings.get(setting):
            words += [f"--{setting.replace('_', '-')}", str(entry.settings[setting])]
    for name, value in sorted(entry.switches.items()):
        words += ["--switch", f"{name}={value}"]
    return shlex.join(words)


def _settings(entry: Entry) -> str:
    return "\n".join(
        f"{name}: {value}"
        for name, value in sorted(entry.settings.items())
        if value is not None and name not in ("model", "peer_model", "fingerprint")
    )
