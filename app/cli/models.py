"""`fineprint models`: what can be pulled and what is here."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.reporting import JsonOption, emit, reporting

if TYPE_CHECKING:
    from app.settings import Settings

commands = typer.Typer(help="List and fetch models.", no_args_is_help=True)


@commands.command("list")
def list_command(as_json: JsonOption = False) -> None:
    """Models known by name and whether they are here, and the families of others."""
    from app.models import list_models
    from app.settings import load_settings
    from backend.config import FAMILIES

    with reporting(as_json):
        settings = load_settings()
        states = list_models(settings.cache_dir)
    if as_json:
        models = [
            {
                "name": state.model.name,
                "description": state.model.description,
                "licence": state.model.licence,
                "bytes": state.model.member_bytes,
                "path": None if state.path is None else str(state.path),
                "damaged": state.damaged,
            }
            for state in states
        ]
        emit({"models": models, "families": FAMILIES})
        return
    for state in states:
        here = "damaged" if state.damaged else state.path or "not here"
        typer.echo(f"{state.model.name}: {state.model.description} ({state.model.licence}); {here}")
    typer.echo(f"Or --model with a Hugging Face folder of a family: {', '.join(FAMILIES)}.")


@commands.command("pull")
def pull_command(
    name: Annotated[
        str | None,
        typer.Argument(help="Name from `models list` [the default model].", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch a model into the cache, whole and verified, or not at all."""
    from app.settings import load_settings

    with reporting(as_json):
        settings = load_settings(model=name)
        path = pull_shown(settings)
    if as_json:
        emit({"model": settings.model, "path": path})
        return
    typer.echo(path)


def pull_shown(settings: Settings) -> str:
    """Pulls the settings' model with a progress bar on stderr; where it lies."""
    from tqdm import tqdm

    from app.model_pull import pull

    bar = tqdm(desc=settings.model, unit="B", unit_scale=True, file=sys.stderr, disable=None)
    with bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        return str(pull(settings.model, settings.cache_dir, show))
