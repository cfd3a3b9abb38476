"""Models: one decoder for all families, built from a checkpoint."""

from __future__ import annotations

import torch

from backend.layers.linear import LinearFormat, Precision
from backend.loader import Checkpoint
from backend.models.calibration import CALIBRATION, run_tokens
from backend.models.decoder import Attend, Decoder
from backend.models.smoothing import smooth

__all__ = ["Attend", "Decoder", "build_decoder"]


def build_decoder(
    checkpoint: Checkpoint,
    precision: Precision,
    device: torch.device,
    linear_format: LinearFormat = "dense",
) -> Decoder:
    """The model of a checkpoint. For int8, activations are first observed on a short text and
    smoothed, but for latent families, of which the weights alone are int8: an expert may see no
    token of a short text."""
    if precision != "int8" or checkpoint.config.latent is not None:
        return Decoder(
            checkpoint.config, checkpoint.tensors, precision, device, linear_format=linear_format
        )
    token_ids = checkpoint.tokenizer.encode(CALIBRATION)
    smoothed = smooth(
        checkpoint.config, checkpoint.tensors, lambda decoder: run_tokens(decoder, token_ids)
    )
    return Decoder(checkpoint.config, checkpoint.tensors, precision, device, smoothed=smoothed)
