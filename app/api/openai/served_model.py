"""The one model that this server has, under the names by which it may be asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from app.errors import NotFound
from app.models import catalogue_model
from app.services import Services


@dataclass(frozen=True, slots=True)
class ServedModel:
    """`id` is the catalogue's name, or that of the checkpoint's folder or file. `created` is the
    time (epoch seconds) at which this server opened it, `window` its length in tokens."""

    id: str
    names: frozenset[str]
    created: int
    window: int

    @classmethod
    def of(cls, services: Services, *, created: int) -> ServedModel:
        """The model that the engine of these services holds."""
        chosen = services.settings.model
        known = catalogue_model(chosen)
        if known is not None:
            name, others = known.name, (chosen, *known.aliases)
        else:
            path = Path(chosen).expanduser().resolve()
            name = path.stem if path.suffix.lower() == ".gguf" else path.name
            others = (chosen,)
        names = frozenset(other.lower() for other in (name, *others))
        return cls(name, names, created, services.engine.config.max_positions)

    def require(self, name: str) -> None:
        """Raises NotFound (`model_not_found`) for another model's name."""
        if name.lower() not in self.names:
            raise NotFound(
                f"The model {name[:200]!r} does not exist here. This server has {self.id!r}; GET "
                "/v1/models lists it.",
                code="model_not_found",
                details={"param": "model"},
            )

    def public(self) -> dict[str, object]:
        """OpenAI's model object, with the window under vLLM's name for it."""
        return {
            "id": self.id,
            "object": "model",
            "created": self.created,
            "owned_by": "fineprint",
            "max_model_len": self.window,
        }
