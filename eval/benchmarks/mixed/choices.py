"""What the command line of the mixed load chose: presets, overruled by single options."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.errors import BadParameter
from eval.benchmarks.lengths import parse_length, parse_lengths
from eval.benchmarks.mixed.load import LoadShape, require_sensible
from eval.benchmarks.mixed.types import Label

CELLS = ("cold", "mixed")
PRESETS: Mapping[str, LoadShape] = {
    "protocol": LoadShape(
        requests=50,
        lengths=tuple(4096 * 2**power for power in range(8)),
        long_share=0.2,
        concurrency=32,
        rounds=5,
        hit_share=0.5,
        output_tokens=96,
    ),
    "cpu": LoadShape(
        requests=12,
        lengths=(1024, 2048, 4096, 8192),
        long_share=0.2,
        concurrency=8,
        rounds=3,
        hit_share=0.5,
        output_tokens=96,
    ),
}
"""`protocol` is that of DESIGN section 6; `cpu` keeps its shares and fits two cores."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the load goes. `serve`: to a server of the benchmark's own, `url` is then None. `key`
    is an API key."""

    api: str
    url: str | None
    serve: bool
    model: str | None
    timeout_s: float
    key: str | None = None


def choose_shape(preset: str, **options: object) -> LoadShape:
    """The preset with those options that are not None; `lengths` is text. Without a seed one is
    drawn, so that no server has met the documents. Raises BadParameter, EvalError."""
    if preset not in PRESETS:
        raise BadParameter(f"There is no preset {preset!r}; choose {' or '.join(PRESETS)}.")
    given = {name: value for name, value in options.items() if value is not None}
    if "lengths" in given:
        given["lengths"] = span_of_lengths(str(given["lengths"]))
    given.setdefault("seed", random.SystemRandom().getrandbits(31))
    shape = dataclasses.replace(PRESETS[preset], **given)  # type: ignore[arg-type]
    require_sensible(shape)
    return shape


def span_of_lengths(written: str) -> tuple[int, ...]:
    """ "4K,16K", or "4K-32K" for 4K, 8K, 16K and 32K. Raises BadParameter."""
    first, dash, last = written.partition("-")
    if not dash:
        return parse_lengths(written)
    length, end = parse_length(first), parse_length(last)
    if length > end:
        raise BadParameter(f"The range {written!r} ends before it begins.")
    lengths = []
    while length < end:
        lengths.append(length)
        length *= 2
    return (*lengths, end)


def choose_cells(written: str) -> tuple[str, ...]:
    """ "cold,mixed" -> ("cold", "mixed"). Raises BadParameter."""
    cells = tuple(part.strip() for part in written.split(","))
    if not cells or any(cell not in CELLS for cell in cells):
        raise BadParameter(f"--cells takes {', '.join(CELLS)} or both, not {written!r}.")
    return tuple(cell for cell in CELLS if cell in cells)


def choose_claim(written: str | None) -> Label | None:
    """ "cold" or nothing. Raises BadParameter."""
    if written not in (None, "cold"):
        raise BadParameter(f"--claim takes cold, not {written!r}: nothing else is refused.")
    return "cold" if written else None


def choose_target(
    *,
    api: str,
    url: str | None,
    serve: bool,
    model: str | None,
    timeout_s: float,
    key_file: Path | None,
) -> Target:
    """Where to send. Raises BadParameter for what does not go together."""
    if api not in ("rest", "openai"):
        raise BadParameter(f"--api is rest or openai, not {api!r}.")
    if serve == (url is not None):
        raise BadParameter("Give the server's address with --url, or start one with --serve.")
    if api == "openai" and not serve and model is None:
        raise BadParameter("Name the model that the server knows with --model.")
    if timeout_s <= 0:
        raise BadParameter("--timeout is a number of seconds above 0.")
    key = None
    if key_file is not None:
        try:
            key = key_file.read_text("utf-8").strip()
        except OSError as error:
            raise BadParameter(f"{key_file} can't be read: {error.strerror}") from error
    return Target(api, url, serve, model, timeout_s, key)


def text_files(given: Sequence[Path] | None) -> tuple[Path, ...]:
    """Files to take sentences from: the given ones, or the English sample contract (the default
    model spends three times as many tokens on Chinese)."""
    from eval.benchmarks.documents import sample_files

    if given:
        return tuple(given)
    samples = sample_files()
    return tuple(path for path in samples if ".en." in path.name) or samples
