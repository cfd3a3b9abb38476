"""What holds for the repository as a whole: the files a newcomer meets are there, true and short.

Reads files and starts `make --dry-run` and `bash -n`; imports no engine.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from email.message import Message
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
MAX_LINES = 500

# Folders that exist on one machine only. Spelt in parts, so that this file does not match itself.
MACHINE_PATH = re.compile(r"(?<![\w.])/" + r"(?:work/|root/|Users/[a-z]|tmp/[a-z])")


def repository_files() -> list[Path]:
    """What git tracks or would track, so that a fault is met before the commit."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    return [path for name in listing.split("\0") if name and (path := ROOT / name).is_file()]


def python_files() -> list[Path]:
    return [path for path in repository_files() if path.suffix == ".py"]


def markdown_files() -> list[Path]:
    return [path for path in repository_files() if path.suffix == ".md"]


def names(paths: list[Path]) -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in paths]


def load_script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Files and what stands in them


@pytest.mark.parametrize(
    "name",
    [
        ".ci/run",
        "CHANGELOG.md",
        "Dockerfile",
        "LICENSE",
        "Makefile",
        "README.md",
        "README.zh-CN.md",
        "constraints.txt",
        "docker-compose.yml",
        "docs/adr",
        "docs/architecture.md",
        "docs/glossary.md",
    ],
)
def test_a_newcomer_finds(name: str) -> None:
    assert (ROOT / name).exists()


def test_no_python_file_is_too_long_to_read() -> None:
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in python_files()}
    assert lengths
    assert names([path for path, length in lengths.items() if length > MAX_LINES]) == []


def test_every_module_says_what_it_does() -> None:
    modules = [path for path in python_files() if path.relative_to(ROOT).parts[0] in PACKAGES]
    assert modules
    silent = [path for path in modules if not ast.get_docstring(ast.parse(path.read_bytes()))]
    assert names(silent) == []


def test_no_file_names_a_folder_of_one_machine() -> None:
    found = []
    for path in repository_files():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{names([path])[0]}: {match[0]}" for match in MACHINE_PATH.finditer(text)]
    assert found == []


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("see /" + "work/main", True),
        ("'/" + "tmp/x.json'", True),
        ("/" + "root/.cache", True),
        ("https://example.org/work/1", False),
        ("../root/x", False),
    ],
)
def test_machine_paths_are_told_from_other_text(text: str, matches: bool) -> None:
    assert bool(MACHINE_PATH.search(text)) is matches


def test_only_the_settings_read_the_environment() -> None:
    readers = []
    for path in python_files():
        relative = path.relative_to(ROOT)
        if relative.parts[0] not in PACKAGES or relative.as_posix() == "app/settings.py":
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            read = isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}
            if read and isinstance(node.value, ast.Name) and node.value.id == "os":
                readers.append(f"{relative}:{node.lineno}")
    assert readers == []


# Documents


def tokens(path: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(path.read_text("utf-8"))


def headings(path: Path) -> list[tuple[str, str]]:
    """(tag, text) of each heading."""
    parsed = tokens(path)
    return [
        (token.tag, parsed[index + 1].content)
        for index, token in enumerate(parsed)
        if token.type == "heading_open"
    ]


def anchor(heading: str) -> str:
    """The fragment that a forge gives to a heading."""
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.replace(" ", "-")


def links(path: Path) -> Iterator[str]:
    for token in tokens(path):
        for child in token.children or []:
            target = child.attrGet("href") or child.attrGet("src")
            if isinstance(target, str):
                yield target


def test_links_between_documents_resolve() -> None:
    broken = []
    for path in markdown_files():
        for target in links(path):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, fragment = target.partition("#")
            there = (path.parent / name).resolve() if name else path
            good = there.exists()
            if good and fragment and there.suffix == ".md":
                good = fragment in {anchor(text) for _, text in headings(there)}
            if not good:
                broken.append(f"{names([path])[0]} -> {target}")
    assert broken == []


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_readme_starts_with_the_two_commands(name: str) -> None:
    code = "\n".join(token.content for token in tokens(ROOT / name) if token.type == "fence")
    assert re.search(r"^make run\b", code, re.MULTILINE)
    assert re.search(r"^make test\b", code, re.MULTILINE)


def test_both_readmes_have_the_same_headings() -> None:
    english, chinese = (headings(ROOT / name) for name in ("README.md", "README.zh-CN.md"))
    assert [tag for tag, _ in english] == [tag for tag, _ in chinese]


def test_decisions_are_numbered_once_and_complete() -> None:
    decisions = sorted((ROOT / "docs" / "adr").glob("*.md"))
    assert decisions
    numbers = [path.name[:4] for path in decisions]
    assert all(re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", path.name) for path in decisions)
    assert len(set(numbers)) == len(numbers)
    for path in decisions:
        sections = {text for tag, text in headings(path) if tag == "h2"}
        assert {"Context", "Decision", "Consequences"} <= sections, path.name


# Set-up


@pytest.mark.parametrize("target", ["setup", "run", "test", "check", "fix"])
def test_make_knows(target: str) -> None:
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", target],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert ".venv" in done.stdout


def test_ci_script_can_run() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", str(script)], check=True)
    assert "set -euo pipefail" in script.read_text("utf-8")


def pins() -> dict[str, str]:
    found = {}
    for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            name, version = line.split("==")
            found[canonicalize_name(name)] = version
    return found


def test_every_dependency_is_pinned_to_a_version_it_allows() -> None:
    optional = PROJECT["project"]["optional-dependencies"]
    lines = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]
    for extra in optional.values():
        lines += extra
    pinned = pins()
    wrong = []
    for line in lines:
        requirement = Requirement(line)
        version = pinned.get(canonicalize_name(requirement.name))
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            wrong.append(f"{line}: constraints.txt has {version}; run make lock")
    assert wrong == []


def test_what_the_dependencies_need_is_pinned() -> None:
    needed = load_script("check_licences").closure("fineprint", frozenset({"dev", "postgres"}))
    assert sorted(set(needed) - set(pins())) == []


def test_pins_bring_no_cuda_libraries() -> None:
    # nvidia-ml-py is 330 KB of Python: it asks the driver, and brings nothing of CUDA.
    brought = {name for name in pins() if name.startswith(("nvidia-", "cuda-"))}
    assert brought <= {"nvidia-ml-py"}


# Licences


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("AGPL-3.0-or-later", False),
        ("LGPL-3.0-only", False),
        ("MIT AND GPL-2.0-only", False),
        ("GPL-2.0-only OR MIT", True),
        ("MPL-2.0 AND (Apache-2.0 OR AGPL-3.0-only)", True),
        ("(MIT OR Apache-2.0) AND GPL-3.0-only", False),
        ("MIT OR Apache-2.0 AND GPL-3.0-only", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
        ("LicenseRef-Proprietary", False),
    ],
)
def test_licence_expressions(expression: str, allowed: bool) -> None:
    assert load_script("check_licences").is_allowed(expression) is allowed


def test_the_lgpl_is_allowed_to_the_database_driver_alone() -> None:
    licences = load_script("check_licences")
    assert licences.is_allowed("LGPL-3.0-only", licences.ALLOWED_FOR["psycopg"])
    assert set(licences.ALLOWED_FOR) == {"psycopg", "psycopg-binary"}


def stated(**fields: list[str]) -> Message:
    message = Message()
    for name, values in fields.items():
        for value in values:
            message[name.replace("_", "-")] = value
    return message


@pytest.mark.parametrize(
    ("metadata", "expression"),
    [
        (stated(License_Expression=["mit"]), "MIT"),
        (stated(Classifier=["License :: OSI Approved :: MIT License"]), "(MIT)"),
        (
            stated(
                Classifier=["License :: OSI Approved :: MIT License", "License :: DFSG approved"]
            ),
            "(MIT)",
        ),
        (stated(License=["Apache 2.0 License"]), "(Apache-2.0)"),
        (stated(License=["3-Clause BSD License"]), "(BSD-3-Clause)"),
    ],
)
def test_licence_statements_are_read(metadata: Message, expression: str) -> None:
    assert load_script("check_licences").statement(metadata) == expression


@pytest.mark.parametrize(("absent", "status"), [("ocr", 0), ("postgres", 1)])
def test_only_extras_that_setup_leaves_out_may_be_unread(
    absent: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    licences = load_script("check_licences")

    def closure(name: str, extras: frozenset[str]) -> list[str]:
        if absent in extras:
            raise PackageNotFoundError("lacking")
        return ["packaging"]

    monkeypatch.setattr(licences, "closure", closure)
    assert licences.main() == status
    shown = "".join(capsys.readouterr())
    assert "lacking is not installed" in shown
    extras = PROJECT["project"]["optional-dependencies"].keys()
    assert {*licences.EXTRAS, *licences.FURTHER_EXTRAS, "dev"} == set(extras)


@pytest.mark.parametrize("metadata", [stated(), stated(License=["see the web page"])])
def test_an_unreadable_licence_is_refused(metadata: Message) -> None:
    licences = load_script("check_licences")
    with pytest.raises(licences.UnknownLicence, match="no SPDX expression"):
        licences.statement(metadata)


# Containers


def compose() -> dict[str, dict[str, dict[str, object]]]:
    parsed = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
    assert isinstance(parsed, dict)
    return parsed


def test_containers_are_published_on_loopback_only() -> None:
    published = [port for each in compose()["services"].values() for port in each.get("ports", [])]
    assert published
    assert [port for port in published if not str(port).startswith("127.0.0.1:")] == []


def test_the_container_is_healthy_when_it_is_ready() -> None:
    services = compose()["services"]
    assert services["app"]["profiles"] == ["cpu"]
    assert "/readyz" in str(services["app"]["healthcheck"])
    assert "/readyz" in (ROOT / "Dockerfile").read_text("utf-8")
    assert "USER fineprint" in (ROOT / "Dockerfile").read_text("utf-8")


def test_no_password_is_written_down() -> None:
    for name, service in compose()["services"].items():
        for variable, value in dict(service.get("environment", {})).items():
            if "PASSWORD" in variable:
                assert value == "${POSTGRES_PASSWORD:-}", (name, variable)
    assert "\nPOSTGRES_PASSWORD=\n" in (ROOT / ".env.example").read_text("utf-8")


def test_containers_set_only_settings_that_exist() -> None:
    from app.settings import unknown_variables

    given: dict[str, str] = {}
    for service in compose()["services"].values():
        given |= dict(service.get("environment", {}))  # type: ignore[call-overload]
    for name in (".env.example", "Dockerfile"):
        text = (ROOT / name).read_text("utf-8")
        given |= dict(re.findall(r"\b(FINEPRINT_[A-Z_]+)=(\S*)", text))
    assert any(name.startswith("FINEPRINT_") for name in given)
    assert unknown_variables(given) == []


def test_the_image_copies_every_package() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    sent = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    for name in PACKAGES:
        assert f"COPY {name} {name}\n" in dockerfile
        assert f"!{name}" in sent
