"""Model families and their registry."""

from __future__ import annotations

from backend.models.decoder import Attend, Decoder

__all__ = ["Attend", "Decoder"]
