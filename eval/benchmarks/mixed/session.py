"""One run of the mixed-load benchmark from its choices to its record."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from app.models import resolve_model
from app.settings import load_settings
from backend.errors import CheckpointError
from backend.loader import load_checkpoint
from eval.benchmarks.documents import load_pieces
from eval.benchmarks.mixed.benchmark import Conditions, Tell, run_file, run_generated
from eval.benchmarks.mixed.choices import Target
from eval.benchmarks.mixed.completions import CompletionsDoor
from eval.benchmarks.mixed.doors import Door
from eval.benchmarks.mixed.load import LoadShape, Texts, cold_load, mixed_load
from eval.benchmarks.mixed.loadfile import read_load, write_load
from eval.benchmarks.mixed.rest import RestDoor
from eval.benchmarks.mixed.serving import served
from eval.benchmarks.mixed.summary import cell_fields, summarise
from eval.benchmarks.mixed.types import CellRecord
from eval.benchmarks.record import make_record
from eval.errors import EvalError

Fields = dict[str, object]
Rounds = list[list[CellRecord]]
Run = Callable[[Door], Awaitable[Rounds]]

_SPEED_SETTINGS = (
    "device",
    "precision",
    "reading",
    "threads",
    "block_tokens",
    "kv_budget_mb",
    "ingest_workers",
    "documents_in_memory",
)
CLOCK = (
    "client, monotonic; starts before the first byte of the upload or prompt, stops at the first "
    "delta with a visible character"
)


@dataclass(frozen=True, slots=True)
class Material:
    """What documents are made of: sentences of `files`, counted with the tokenizer of `tokenizer`
    (None: the model of the settings)."""

    files: tuple[Path, ...]
    tokenizer: str | None


def measure_generated(
    target: Target,
    shape: LoadShape,
    material: Material,
    cells: Sequence[str],
    *,
    keep: bool,
    tell: Tell,
) -> Fields:
    """The record of generated loads. Raises EvalError, NotCold, PeerError and what models raise."""
    texts = load_texts(material)

    async def run(door: Door) -> Rounds:
        return await run_generated(door, shape, texts, cells, keep=keep, tell=tell)

    config = {
        **asdict(shape),
        "cells": list(cells),
        "texts": [path.name for path in material.files],
        "keep": keep,
    }
    return _measured(target, config, run)


def measure_file(target: Target, path: Path, conditions: Conditions, tell: Tell) -> Fields:
    """The record of the loads in a file. Raises DatasetError, NotCold, PeerError."""
    requests = read_load(path)

    async def run(door: Door) -> Rounds:
        return await run_file(door, requests, conditions, tell)

    config = {"load": path.name, "requests": len(requests), **asdict(conditions)}
    return _measured(target, config, run)


def save_load(path: Path, shape: LoadShape, material: Material, cells: Sequence[str]) -> int:
    """Writes the first round's loads; returns the number of requests. A mixed load stands behind
    the cold one that brings its documents, whether that was chosen or not."""
    texts = load_texts(material)
    cold = cold_load(shape, texts, 0)
    mixed = mixed_load(shape, texts, 0, cold) if "mixed" in cells else ()
    write_load(path, (*cold, *mixed))
    return len(cold) + len(mixed)


def load_texts(material: Material) -> Texts:
    """Sentences, and a counter for their tokens; the model's weights are not read. Raises
    EvalError for a model without a usable tokenizer, and what `resolve_model` raises."""
    settings = load_settings()
    path = resolve_model(material.tokenizer or settings.model, settings.cache_dir)
    try:
        tokenizer = load_checkpoint(path).tokenizer
    except CheckpointError as error:
        raise EvalError(f"No tokenizer to count with: {error}") from error
    return Texts(load_pieces(material.files), lambda text: len(tokenizer.encode(text)))


def _measured(target: Target, config: Mapping[str, object], run: Run) -> Fields:
    with _server(target) as url:
        facts, rounds = asyncio.run(_sent(target, url, run))
    return make_record(
        "mixed",
        device=_device() if target.serve else "unknown",
        config={**config, "timeout_s": target.timeout_s, "clock": CLOCK, "server": facts},
        rounds=[{"cells": [cell_fields(cell) for cell in cells]} for cells in rounds],
        results=summarise(rounds),
    )


async def _sent(target: Target, url: str, run: Run) -> tuple[Fields, Rounds]:
    door = _door(target, url)
    try:
        facts: Fields = {"api": door.api, "served_here": target.serve, **await door.prepare()}
        if target.serve:
            facts["settings"] = _settings(target.model)
        try:
            return facts, await run(door)
        except BaseException:
            # What was uploaded goes also when the run is given up; that it fails matters less.
            with contextlib.suppress(EvalError):
                await door.forget()
            raise
    finally:
        await door.close()


def _door(target: Target, url: str) -> Door:
    if target.api == "rest":
        return RestDoor(url, timeout_s=target.timeout_s)
    model = target.model or load_settings().model
    return CompletionsDoor(url, model=model, timeout_s=target.timeout_s, key=target.key)


@contextlib.contextmanager
def _server(target: Target) -> Iterator[str]:
    if target.url is not None:
        yield target.url
        return
    with served(target.model) as url:
        yield url if target.api == "rest" else f"{url}/v1"


def _settings(model: str | None) -> Fields:
    """Those settings of a server started here that change its speed; None is the engine's own
    choice."""
    settings = load_settings(model=model)
    chosen = {name: getattr(settings, name) for name in _SPEED_SETTINGS}
    return {"model": Path(settings.model).name, **chosen}


def _device() -> str:
    """The device that a server with these settings takes."""
    import torch

    device = load_settings().device
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return device
