"""Models: one decoder for all families, built from a checkpoint."""

from __future__ import annotations

import torch

from backend.errors import BackendError
from backend.layers.linear import FewRows, LinearFormat, Precision
from backend.loader import Checkpoint
from backend.loader.awq import AwqTensors
from backend.models.calibration import CALIBRATION, run_tokens
from backend.models.decoder import Attend, Decoder
from backend.models.smoothing import smooth

__all__ = ["Attend", "Decoder", "build_decoder"]


def build_decoder(
    checkpoint: Checkpoint,
    precision: Precision,
    device: torch.device,
    linear_format: LinearFormat = "dense",
    few_rows: FewRows = "library",
) -> Decoder:
    """The model of a checkpoint. For int8, activations are first observed on a short text and
    smoothed, but for latent families, of which the weights alone are int8: an expert may see no
    token of a short text. Weights in 4 bits stay so but for int8, which is made of dense ones.

    Raises BackendError for 4 bits with products in FP8.
    """
    tensors = checkpoint.tensors
    if isinstance(tensors, AwqTensors):
        if linear_format == "fp8":
            raise BackendError(
                "Weights in 4 bits don't go through products in FP8: leave the linear format at "
                "dense, or use the unquantised checkpoint"
            )
        tensors = tensors.unpacked() if precision == "int8" else tensors
    if precision != "int8" or checkpoint.config.latent is not None:
        return Decoder(
            checkpoint.config,
            tensors,
            precision,
            device,
            linear_format=linear_format,
            few_rows=few_rows,
        )
    token_ids = checkpoint.tokenizer.encode(CALIBRATION)
    smoothed = smooth(checkpoint.config, tensors, lambda decoder: run_tokens(decoder, token_ids))
    return Decoder(checkpoint.config, tensors, precision, device, smoothed=smoothed)
