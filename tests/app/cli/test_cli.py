"""Commands: exit codes, one JSON object on stdout, clear messages, nothing left behind."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CONTRACT = (
    "SUPPLY AGREEMENT\n\n"
    "1. Term\nThis Agreement runs for two years from 1 March 2024.\n\n"
    "2. Price\nThe total price is EUR 1,250,000.00, payable within thirty days.\n"
)


def one_object(result: Any) -> dict[str, Any]:
    lines = result.stdout.splitlines()
    assert len(lines) == 1, result.stdout
    body: dict[str, Any] = json.loads(lines[0])
    return body


@pytest.fixture
def contract(tmp_path: Path) -> Path:
    path = tmp_path / "contract.txt"
    path.write_text(CONTRACT, encoding="utf-8")
    return path


@pytest.fixture
def with_engine(tiny_llama: Path) -> Callable[[Path], list[str]]:
    """Options that answer with a tiny random model: the quotes need no clever one."""
    return lambda path: [str(path), "--model", str(tiny_llama), "--json"]


ASK_FIELDS = {
    "answer", "status", "language", "citations", "checks", "coverage", "timings", "usage",
}  # fmt: skip
CITATION_FIELDS = {
    "quote", "document_id", "document", "page", "page_label", "start_char", "end_char", "clause",
    "boxes", "verified", "role", "replaced",
}  # fmt: skip


def test_ask_prints_the_promised_fields_and_reuses_the_document(
    run: Any, contract: Path, with_engine: Any
) -> None:
    first = run("ask", *with_engine(contract), "-q", "What is the total price?")
    assert first.exit_code == 0, first.stderr
    body = one_object(first)
    assert set(body) == ASK_FIELDS
    assert body["status"] == "answered"
    citation = body["citations"][0]
    assert set(citation) == CITATION_FIELDS
    assert CONTRACT[citation["start_char"] : citation["end_char"]] == citation["quote"]
    assert "1,250,000.00" in citation["quote"]
    assert all(set(check) == {"kind", "text", "ok"} for check in body["checks"])
    assert body["coverage"]["read_tokens"] == body["coverage"]["total_tokens"]
    assert body["usage"]["read_tokens"] == body["coverage"]["total_tokens"]
    assert body["timings"]["total_ms"] >= body["timings"]["ttft_ms"] > 0

    again = one_object(run("ask", *with_engine(contract), "-q", "What is the total price?"))
    assert again["citations"][0]["document_id"] == citation["document_id"]
    assert again["timings"]["parse_ms"] == 0
    listed = one_object(run("documents", "list", "--json"))
    assert [entry["name"] for entry in listed["data"]] == ["contract.txt"]


def test_ask_speaks_to_people(run: Any, contract: Path, tiny_llama: Path) -> None:
    result = run("ask", str(contract), "--model", str(tiny_llama), "-q", "What is the total price?")
    assert result.exit_code == 0
    assert "EUR 1,250,000.00" in result.stdout and "tokens read" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["missing.pdf", "-q", "Price?"], "file_not_found"),
        (["FILE", "-q", "  "], "bad_question"),
        (["FILE", "-q", "x" * 50_000], "bad_question"),
        (["FILE", "-q", "Price?", "--model", "no-such-model"], "unknown_model"),
    ],
)
def test_wrong_calls_exit_2_and_leave_nothing(
    run: Any, contract: Path, data_dir: Path, arguments: list[str], code: str
) -> None:
    given = [str(contract) if word == "FILE" else word for word in arguments]
    result = run("ask", *given, "--json")
    assert result.exit_code == 2
    assert one_object(result)["error"]["code"] == code
    assert result.stderr.startswith("fineprint: ")
    assert not data_dir.exists()


def test_a_model_that_is_not_here_is_named_with_its_remedy(
    run: Any, contract: Path, data_dir: Path
) -> None:
    result = run("ask", str(contract), "-q", "Price?", "--json")
    assert result.exit_code == 1
    error = one_object(result)["error"]
    assert error["code"] == "model_unavailable" and "fineprint models pull" in error["message"]
    assert not data_dir.exists()


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("empty.txt", b"", "empty_file"),
        ("blank.txt", b" \f --- \n", "document_failed"),
        ("wrong.pdf", b"plain words in here", "document_failed"),
        ("broken.docx", b"PK\x03\x04 nothing behind it", "document_failed"),
    ],
)
def test_unreadable_files_exit_2_and_are_not_kept(
    run: Any, tmp_path: Path, data_dir: Path, with_engine: Any, name: str, content: bytes, code: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    result = run("ask", *with_engine(path), "-q", "What is the price?")
    assert result.exit_code == 2, result.stderr
    assert one_object(result)["error"]["code"] == code
    assert one_object(run("documents", "list", "--json"))["total"] == 0
    assert [file for file in (data_dir / "files").rglob("*") if file.is_file()] == []


def test_documents_show_and_delete(run: Any, contract: Path, with_engine: Any) -> None:
    body = one_object(run("ask", *with_engine(contract), "-q", "What is the total price?"))
    document_id = body["citations"][0]["document_id"]
    shown = one_object(run("documents", "show", document_id, "--json"))
    assert (shown["name"], shown["status"]) == ("contract.txt", "completed")
    assert run("documents", "list").stdout.splitlines()[0].startswith(document_id)
    assert one_object(run("documents", "delete", document_id, "--json"))["deleted"] is True
    gone = run("documents", "show", document_id, "--json")
    assert gone.exit_code == 2 and one_object(gone)["error"]["code"] == "not_found"


def test_backup_and_restore(
    run: Any, contract: Path, tmp_path: Path, data_dir: Path, with_engine: Any
) -> None:
    assert run("ask", *with_engine(contract), "-q", "What is the total price?").exit_code == 0
    archive = tmp_path / "saved.tar"
    saved = one_object(run("db", "backup", str(archive), "--json"))
    assert saved["bytes"] == archive.stat().st_size > 0

    refused = run("db", "restore", str(archive), "--json")
    assert refused.exit_code == 2 and one_object(refused)["error"]["code"] == "data_exists"
    listed = one_object(run("documents", "list", "--json"))["data"]
    run("documents", "delete", listed[0]["id"])
    replaced = one_object(run("db", "restore", str(archive), "--replace", "--json"))
    assert Path(replaced["replaced"]).is_dir()
    assert one_object(run("documents", "list", "--json"))["data"] == listed
    again = one_object(run("ask", *with_engine(contract), "-q", "What is the total price?"))
    assert again["timings"]["parse_ms"] == 0

    archive.write_bytes(archive.read_bytes()[:5000])
    elsewhere = ["--data-dir", str(tmp_path / "other"), "--json"]
    broken = run("db", "restore", str(archive), *elsewhere)
    assert broken.exit_code == 1 and one_object(broken)["error"]["code"] == "bad_backup"
    assert not (tmp_path / "other" / "fineprint.sqlite").exists()


def test_db_upgrade_is_repeatable(run: Any, data_dir: Path) -> None:
    first = one_object(run("db", "upgrade", "--json"))
    assert first["from"] is None and first["to"]
    assert one_object(run("db", "upgrade", "--json")) == {"from": first["to"], "to": first["to"]}
    nothing = run("db", "backup", str(data_dir / "x.tar"), "--data-dir", str(data_dir / "none"))
    assert nothing.exit_code == 2 and "no database" in nothing.stderr


def test_models_list(run: Any) -> None:
    told = one_object(run("models", "list", "--json"))
    assert {"llama", "qwen3", "deepseek_v3"} <= set(told["families"])
    assert "deepseek_v3" in run("models", "list").stdout
    listed = told["models"]
    assert listed[0]["name"] == "smollm2-135m-instruct" and listed[0]["path"] is None
    assert run("models", "pull", "no-such-model").exit_code == 2


def test_doctor_names_what_is_wrong(run: Any, tiny_llama: Path, data_dir: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run_doctor(run, port)
    assert result.exit_code == 1
    checks = {check["name"]: check for check in one_object(result)["checks"]}
    assert {"python", "torch", "cpu", "memory", "disk", "model", "database", "port"} <= set(checks)
    assert checks["port"]["ok"] is False and "FINEPRINT_PORT" in checks["port"]["detail"]
    assert checks["model"]["ok"] is False and "models pull" in checks["model"]["detail"]
    assert checks["database"]["ok"] is True
    assert not data_dir.exists(), "looking changes nothing"


def run_doctor(run: Any, port: int) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FINEPRINT_PORT", str(port))
        return run("doctor", "--json")


def test_unknown_settings_are_refused(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINEPRINT_PROT", "8000")
    result = run("documents", "list", "--json")
    assert result.exit_code == 2
    assert "FINEPRINT_PORT" in one_object(result)["error"]["message"]


def test_usage_errors_exit_2(run: Any) -> None:
    assert run("ask").exit_code == 2
    assert run("documents", "list", "--limit", "0").exit_code == 2
    assert run("--version").stdout.startswith("fineprint ")
    assert "serve" in run("--help").stdout
