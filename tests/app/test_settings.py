"""Settings: from the environment, with clear errors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.errors import BadSettings
from app.settings import Settings, load_settings, spin_less


def test_defaults_need_nothing() -> None:
    settings = load_settings()
    assert settings.data_dir.is_absolute()
    assert settings.database == f"sqlite:///{settings.data_dir}/fineprint.sqlite"
    assert settings.max_upload_bytes == 200_000_000
    assert settings.max_question_chars == 4000


def test_environment_and_overrides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FINEPRINT_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("FINEPRINT_PORT", "9000")
    assert load_settings().port == 9000
    settings = load_settings(port=9001, host=None)
    assert (settings.port, settings.host, settings.data_dir) == (9001, "127.0.0.1", tmp_path)


def test_a_misspelt_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINEPRINT_MAX_UPLAOD_MB", "10")
    with pytest.raises(BadSettings, match="did you mean FINEPRINT_MAX_UPLOAD_MB"):
        load_settings()


def test_variables_of_the_tests_are_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINEPRINT_TEST_POSTGRES_URL", "x")
    load_settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "99999"),
        ("MAX_UPLOAD_MB", "0"),
        ("DEVICE", "tpu"),
        ("DATABASE_URL", "mysql://localhost/x"),
        ("DATABASE_URL", "sqlite://"),
        ("DATABASE_URL", "no url"),
        ("LOG_LEVEL", "LOUD"),
        ("BLOCK_TOKENS", "100"),
    ],
)
def test_a_wrong_value_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"FINEPRINT_{name}", value)
    with pytest.raises(BadSettings, match=f"FINEPRINT_{name}"):
        load_settings()


def test_postgresql_goes_through_psycopg() -> None:
    settings = Settings(database_url="postgresql://u:secret@db/fineprint")
    assert settings.database == "postgresql+psycopg://u:secret@db/fineprint"


def test_anchors_are_picked_for_chained_reading_only() -> None:
    assert Settings().anchors == 0
    assert Settings(reading="chained").anchors == 64


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, {"GOMP_SPINCOUNT": "10000"}),
        ({"GOMP_SPINCOUNT": "7"}, {"GOMP_SPINCOUNT": "7"}),
        ({"OMP_WAIT_POLICY": "active"}, {"OMP_WAIT_POLICY": "active"}),
    ],
)
def test_threads_spin_less_unless_the_environment_says_how_long(
    monkeypatch: pytest.MonkeyPatch, said: dict[str, str], expected: dict[str, str]
) -> None:
    monkeypatch.setattr(os, "environ", dict(said))
    spin_less()
    assert os.environ == expected


def test_how_long_threads_spin_is_said_before_torch_is_there() -> None:
    program = "import sys, app.settings, ui.serve; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_whether_there_may_be_several_owners_is_said_in_one_place() -> None:
    assert not Settings().several_owners
    assert Settings(api_keys="required").several_owners
    root = Path(__file__).parents[2]
    sources = [path for package in ("app", "ui") for path in (root / package).rglob("*.py")]
    asked = re.compile(r"\.api_keys\s*(==|!=|in\b|not\b)")
    found = [path.relative_to(root) for path in sources if asked.search(path.read_text("utf-8"))]
    assert found == [Path("app/settings.py")]
