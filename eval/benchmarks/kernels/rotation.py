"""Tables of a rotation, for keys that are rotated as they are read."""

from __future__ import annotations

import torch

_BASE = 10_000.0


def rotation(positions: int, width: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and signed sin as `backend.layers.rope.Rope` gives them."""
    steps = torch.arange(0, width, 2, dtype=torch.float32, device=device) / width
    places = torch.arange(positions, dtype=torch.float32, device=device)
    angles = torch.outer(places, _BASE**-steps)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)
