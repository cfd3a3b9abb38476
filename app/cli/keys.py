"""`fineprint keys`: who may use the server once FINEPRINT_API_KEYS=required is set. Works beside a
running server, which heeds a change at the next request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.reporting import DataDirOption, JsonOption, emit, note, reporting

if TYPE_CHECKING:
    from app.api_keys import ApiKey, ApiKeys

commands = typer.Typer(help="Make, list and revoke API keys.", no_args_is_help=True)

MOST_DAYS = 36_500


@commands.command("create")
def create_key(
    owner: Annotated[
        str, typer.Option("--owner", help="Whose documents the key opens.", show_default=False)
    ],
    admin: Annotated[
        bool, typer.Option("--admin", help="May also manage keys and read /metrics.")
    ] = False,
    expires: Annotated[
        str | None,
        typer.Option(help="After so many days (90d), or on a date (2030-12-31, UTC) [never]."),
    ] = None,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Make a key and show it, this once."""
    with reporting(as_json):
        expires_at = None if expires is None else expiry(expires, datetime.now(UTC))
        with _opened(data_dir) as keys:
            made, key = keys.create(owner, role="admin" if admin else "user", expires_at=expires_at)
    if as_json:
        emit(key_fields(made) | {"key": key})
        return
    note(f"A key of {made.owner}, {made.id}. Keep it now: it is stored nowhere.")
    typer.echo(key)


@commands.command("list")
def list_keys(
    limit: Annotated[int, typer.Option(min=1, max=100, help="Keys at most.")] = 100,
    after: Annotated[
        str | None, typer.Option(help="Id of the last key seen.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Keys, the newest first, those that are over too."""
    with reporting(as_json), _opened(data_dir) as keys:
        page = keys.list(limit, after)
    if as_json:
        data = [key_fields(key) for key in page.data]
        emit({"object": "list", "data": data, "has_more": page.has_more, "total": page.total})
        return
    for key in page.data:
        typer.echo(f"{key.id}  {key.prefix}…  {key.role:<5}  {_state(key):<19}  {key.owner}")
    typer.echo(f"{page.total} keys" + (", more with --after" if page.has_more else ""))


@commands.command("revoke")
def revoke_key(
    key: Annotated[
        str,
        typer.Argument(metavar="ID", help="As `keys list` shows it, or the key's beginning."),
    ],
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """End a key for good. Its owner's documents stay, for another key of that owner."""
    with reporting(as_json), _opened(data_dir) as keys:
        revoked = keys.revoke(key)
    if as_json:
        emit(key_fields(revoked))
        return
    typer.echo(f"revoked {revoked.id} of {revoked.owner}")


def expiry(given: str, now: datetime) -> datetime:
    """When a key ends: `90d` from now on, or at the begin of a day in UTC. Raises BadParameter."""
    from app.errors import BadParameter

    days = re.fullmatch(r"(\d{1,5})\s*d", given.strip())
    if days and 0 < int(days[1]) <= MOST_DAYS:
        return now + timedelta(days=int(days[1]))
    try:
        return datetime.strptime(given.strip(), "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as error:
        raise BadParameter(
            f"--expires {given[:40]}: give days, such as 90d, or a date, such as 2030-12-31.",
            code="bad_expiry",
        ) from error


def key_fields(key: ApiKey) -> dict[str, object]:
    """What is kept of a key as JSON, with times as text."""
    return {
        "id": key.id,
        "object": "api_key",
        "owner": key.owner,
        "role": key.role,
        "prefix": key.prefix,
        "active": key.active,
        "created_at": key.created_at.isoformat(),
        "expires_at": _text(key.expires_at),
        "last_used_at": _text(key.last_used_at),
        "revoked_at": _text(key.revoked_at),
    }


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _state(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is None:
        return "active"
    return f"{'until' if key.active else 'expired'} {key.expires_at:%Y-%m-%d}"


@contextmanager
def _opened(data_dir: str | None) -> Iterator[ApiKeys]:
    # Here, not above: other commands must not wait for the database's libraries.
    from app.api_keys import ApiKeys
    from app.db.schema import upgrade
    from app.db.session import Database
    from app.settings import load_settings

    settings = load_settings(data_dir=data_dir)
    database = Database(settings.database, busy_timeout_s=settings.busy_timeout_s)
    with closing(database):
        upgrade(database)
        yield ApiKeys(database)
