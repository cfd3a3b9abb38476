"""GGUF checkpoints: against transformers' reading of the same file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from backend.errors import CheckpointError
from backend.loader import load_checkpoint


@pytest.mark.model
def test_default_model_shape(default_model: Path) -> None:
    config = load_checkpoint(default_model).config
    assert (config.family, config.layers, config.heads, config.kv_heads) == ("llama", 30, 9, 3)
    assert (config.head_dim, config.vocab_size, config.max_positions) == (64, 49152, 8192)
    assert config.tie_embeddings and config.eos_ids[0] == 2


@pytest.mark.model
def test_default_model_splits_digits(default_model: Path) -> None:
    tokenizer = load_checkpoint(default_model).tokenizer
    assert len(tokenizer.encode("1234567")) == 7


@pytest.mark.model
def test_default_model_weights_match_transformers(default_model: Path) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    checkpoint = load_checkpoint(default_model)
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        tie_word_embeddings=True,
    )
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    loaded = load_gguf_checkpoint(str(default_model), return_tensors=True, model_to_load=model)
    theirs = loaded["tensors"]
    for name, tensor in checkpoint.tensors.items():
        assert torch.equal(tensor, theirs[name]), name


def test_other_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"PK\x03\x04" + b"\0" * 100)
    with pytest.raises(CheckpointError, match="not a GGUF file"):
        load_checkpoint(path)
