"""Reads a checkpoint from disk: a GGUF file or a Hugging Face folder with safetensors.

It knows nothing of downloads: it takes a local path.
"""

from __future__ import annotations

from pathlib import Path

from backend.errors import CheckpointError
from backend.loader.checkpoint import Checkpoint, expected_shapes, fingerprint_files
from backend.loader.gguf import load_gguf
from backend.loader.safetensors import load_folder

__all__ = ["Checkpoint", "expected_shapes", "fingerprint_files", "load_checkpoint"]


def load_checkpoint(path: Path) -> Checkpoint:
    """Open the model at `path`. Raises CheckpointError, which names the file and the remedy."""
    if path.is_dir():
        return load_folder(path)
    if not path.exists():
        remedy = "Give a .gguf file or a folder with config.json and safetensors"
        raise CheckpointError(path, "there is no such file or folder", remedy)
    if path.suffix == ".safetensors":
        remedy = "Give the folder that holds it, with config.json and tokenizer.json"
        raise CheckpointError(path, "a safetensors file alone is not a model", remedy)
    return load_gguf(path)
