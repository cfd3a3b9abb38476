"""What the settings of remote servers accept, and what they imply for a question."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from app.ask import ask
from app.asker import asker_for
from app.errors import BadSettings
from app.services import open_remote_engine
from app.settings import load_settings


def test_servers_need_a_model_and_real_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINEPRINT_REMOTE_URLS", "http://127.0.0.1:9/v1, http://10.0.0.6:8000/v1")
    with pytest.raises(BadSettings, match="FINEPRINT_REMOTE_MODEL"):
        load_settings()
    monkeypatch.setenv("FINEPRINT_REMOTE_MODEL", "big")
    settings = load_settings()
    assert settings.remote_servers == ("http://127.0.0.1:9/v1", "http://10.0.0.6:8000/v1")
    for wrong in ("", "10.0.0.5:8000", "ftp://10.0.0.5/v1", "http://a/v1,,"):
        monkeypatch.setenv("FINEPRINT_REMOTE_URLS", wrong)
        with pytest.raises(BadSettings, match="REMOTE_URLS"):
            load_settings()


def test_a_remote_model_is_given_more_evidence() -> None:
    own = asker_for(load_settings())
    assert isinstance(own, partial) and own.func is ask and "options" not in own.keywords
    settings = load_settings(
        remote_urls="http://127.0.0.1:9/v1", remote_model="big", remote_evidence_tokens=9000
    )
    asker = asker_for(settings)
    assert isinstance(asker, partial)
    assert asker.keywords["options"].evidence_tokens == 9000


@pytest.mark.model
def test_an_unreadable_key_is_a_wrong_setting(tmp_path: Path) -> None:
    settings = load_settings(
        remote_urls="http://127.0.0.1:9/v1",
        remote_model="big",
        remote_key_file=tmp_path / "none",
    )
    with pytest.raises(BadSettings, match="REMOTE_KEY_FILE"):
        open_remote_engine(settings)


@pytest.mark.model
def test_a_server_that_is_down_does_not_keep_the_app_from_starting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = load_settings(remote_urls="http://127.0.0.1:9/v1", remote_model="big")
    engine = open_remote_engine(settings)
    assert "model server not usable now: http://127.0.0.1:9/v1" in caplog.text
    assert not engine.alive and "127.0.0.1:9" in engine.problem
    engine.close()
