"""Hugging Face folders: against transformers' reading of the same files."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

from backend.loader import load_checkpoint


def test_weights_match_transformers(tiny_llama: Path) -> None:
    checkpoint = load_checkpoint(tiny_llama)
    theirs = AutoModelForCausalLM.from_pretrained(tiny_llama).state_dict()
    assert set(checkpoint.tensors) | {"lm_head.weight"} == set(theirs)
    for name, tensor in checkpoint.tensors.items():
        assert torch.equal(tensor, theirs[name]), name
