"""Services over a temporary data folder, with a fake engine."""

from __future__ import annotations

import importlib.util
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from app.settings import Settings

if TYPE_CHECKING:
    from app.services import Services

OpenServices = Callable[..., "Services"]


def load_fake_engine() -> ModuleType:
    """The module beside this file; tests are no package."""
    path = Path(__file__).parent / "fake_engine.py"
    spec = importlib.util.spec_from_file_location("fake_engine", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FAKE = load_fake_engine()


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the machine reaches a test."""
    for name in list(os.environ):
        if name.startswith("FINEPRINT_") and not name.startswith("FINEPRINT_TEST_"):
            monkeypatch.delenv(name)


@pytest.fixture
def make_engine() -> Callable[..., Any]:
    """FakeEngine(pace=, fails=, room=)."""
    engine: Callable[..., Any] = FAKE.FakeEngine
    return engine


@pytest.fixture(
    params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)],
)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database; the PostgreSQL one is made for the test and dropped after it."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'data' / 'fineprint.sqlite'}"
        return
    server = os.environ.get("FINEPRINT_TEST_POSTGRES_URL")
    if not server:
        pytest.skip("FINEPRINT_TEST_POSTGRES_URL is not set")
    name = f"fineprint_test_{uuid.uuid4().hex[:12]}"
    admin = create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    try:
        yield make_url(server).set(database=name).render_as_string(hide_password=False)
    finally:
        with admin.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        admin.dispose()


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    """Settings of a temporary installation."""
    return Settings(data_dir=tmp_path / "data", database_url=database_url, heartbeat_s=0.5)


@pytest.fixture
def start(settings: Settings) -> Iterator[OpenServices]:
    """Opens services on `settings` (closed after the test): start(engine=..., serve=True)."""
    # Here, because it loads scikit-learn, which tests without services need not wait for.
    from app.services import open_services

    with ExitStack() as stack:

        def opened(**arguments: Any) -> Services:
            arguments.setdefault("engine", FAKE.FakeEngine())
            own = arguments.pop("settings", settings)
            return stack.enter_context(open_services(own, **arguments))

        yield opened
