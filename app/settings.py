"""Settings of one process: the only reader of the environment.

Every field is read from `FINEPRINT_<FIELD>`. An unknown `FINEPRINT_` variable is refused, because a
misspelt limit that is silently ignored is worse than a stop at start. There are no secrets here
besides the password inside a PostgreSQL URL, which is never printed.
"""

from __future__ import annotations

import difflib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import platformdirs
from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from app.errors import BadSettings

PREFIX = "FINEPRINT_"
TEST_PREFIX = "FINEPRINT_TEST_"
"""Read by the test suite alone."""

KV_DISK_SHARE = 0.2
"""Of the free disk, for KV pages. A fifth leaves uploads, the database and other programs their
room; with 60 GB free it is nine contracts of 60,000 tokens of the default model."""

DEFAULT_MODEL = "smollm2-135m-instruct"

Precision = Literal["auto", "float32", "bfloat16", "int8"]
Reading = Literal["independent", "chained"]
BlockCuts = Literal["clauses", "fixed"]
KVFormat = Literal["auto", "bf16", "fp16", "fp8_tokens32", "fp8_token_head", "int8", "int4"]
AgedFormat = Literal["none", "bf16", "fp16", "fp8_tokens32", "fp8_token_head", "int8", "int4"]
LinearFormat = Literal["dense", "fp8"]
FewRows = Literal["library", "fp8", "all"]
ApiKeyUse = Literal["off", "required"]
KVSharing = Literal["owner", "all"]
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]


_SPINNING = frozenset({"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"})
"""Variables of OpenMP that say how long a thread spins."""


class Settings(BaseSettings):
    """All settings with their defaults. Build it once with `load_settings`."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", use_attribute_docstrings=True
    )

    data_dir: Path = Field(default_factory=lambda: platformdirs.user_data_path("fineprint"))
    """Database, original files and what is derived from them."""
    cache_dir: Path = Field(default_factory=lambda: platformdirs.user_cache_path("fineprint"))
    """Downloaded models."""
    database_url: str | None = None
    """SQLAlchemy URL; None is SQLite in `data_dir`. PostgreSQL: postgresql+psycopg://user@host/db"""

    model: str = DEFAULT_MODEL
    """Name from `fineprint models list`, a checkpoint folder or a .gguf file."""
    device: str = Field(default="auto", pattern=r"^(auto|cpu|cuda(:\d+)?)$")
    """auto (a GPU if there is one), cpu or cuda[:n]."""
    precision: Precision = "auto"
    """Of weights and arithmetic; auto leaves the choice to the engine (by hardware)."""
    linear_format: LinearFormat = "dense"
    """Of a layer's products: dense as the precision says, or fp8 (GPUs with bfloat16 only), made
    for models of billions of weights, which are then read 1.7 times as fast. It costs the default
    model 5 figures of 100."""
    few_rows: FewRows | None = None
    """Which layers of a GPU have a kernel of their own for the few rows of a step of decoding: none
    (library), those in fp8, or all; None leaves the choice to the engine."""
    device_draws: bool | None = None
    """Whether a GPU draws the tokens of answers that are sampled; None leaves the choice to the
    engine."""
    reading: Reading = "independent"
    """Whether a block sees the anchors of earlier blocks (chained) or only the sinks."""
    threads: int | None = Field(default=None, ge=1, le=1024)
    """CPU threads of the engine; None leaves the choice to the engine."""
    block_tokens: int | None = Field(default=None, ge=64, multiple_of=64)
    """Tokens per reading block; None leaves the choice to the engine."""
    block_cuts: BlockCuts = "clauses"
    """Where blocks end: before clauses, so that a new version is read only where it differs, or
    after `block_tokens` tokens each."""
    kv_format: KVFormat = "auto"
    """How KV lies in memory and on the disk; auto is what the model computes in. int8 and fp8 take
    half of 16 bit, int4 less than a third."""
    kv_packed_kernels: bool = False
    """On a GPU: pages of int8, fp8 and int4 are read as they are, instead of being decoded for each
    question: half the memory of an open context, and slower below some 40,000 tokens of it."""
    kv_budget_mb: int | None = Field(default=None, ge=16)
    """Memory for KV pages (1 MB = 1,000,000 bytes); None leaves the choice to the engine."""
    kv_share: float | None = Field(default=None, gt=0, le=0.95)
    """Share of a GPU's memory that is free once the weights are there, or of a CPU's whole memory,
    for KV pages where `kv_budget_mb` names no amount; None is 0.7 or 0.4."""
    kv_host_mb: int | None = Field(default=None, ge=0)
    """Host memory for KV pages that had to make room; 0 keeps none. None keeps none either unless
    they age, and then takes up to a fifth of the memory."""
    kv_aged_format: AgedFormat = "none"
    """A smaller format for those pages, in which more fit and from which answers differ a little;
    none keeps them as they were."""
    kv_disk_mb: int | None = Field(default=None, ge=0)
    """Disk for KV pages in `data_dir`, so that nothing is read again after a restart; 0 keeps none
    and removes those there. None is a fifth of what is free on that disk."""
    kv_sharing: KVSharing = "owner"
    """Who may use the KV of a text that was read: documents of the same owner, or of all owners.
    With `all` one owner can tell by the time that another has the same text."""

    remote_urls: str | None = None
    """OpenAI-compatible servers that write instead of the bundled engine, as base URLs with
    commas between them: http://10.0.0.5:8000/v1,http://10.0.0.6:8000/v1"""
    remote_model: str | None = None
    """The model's name on those servers."""
    remote_key_file: Path | None = None
    """A file with the key that is sent to them."""
    remote_timeout_s: float = Field(default=60.0, gt=0)
    """The longest silence of a remote server."""
    remote_context_tokens: int = Field(default=32768, ge=2048)
    """The window of the model on the servers."""
    remote_evidence_tokens: int = Field(default=6000, ge=256)
    """At most so many tokens of a document go along with a question (counted by the local
    tokenizer)."""

    api_keys: ApiKeyUse = "off"
    """off: everybody who can connect is one user. required: each request needs a key of
    `fineprint keys create` and sees the documents of that key's owner alone."""
    host: str = "127.0.0.1"
    """Address that the server listens on; 0.0.0.0 lets other machines in."""
    port: int = Field(default=8000, ge=0, le=65535)
    """Port that the server listens on; 0 takes a free one."""
    max_upload_mb: int = Field(default=200, ge=1)
    """The largest file that is taken in (1 MB = 1,000,000 bytes)."""
    disk_reserve_mb: int = Field(default=200, ge=0)
    """Room that uploads leave free on the disk with the data, for the database (1 MB = 1,000,000
    bytes)."""
    request_bodies_mb: int = Field(default=128, ge=32)
    """Request bodies that are held at the same time, uploads left out (1 MB = 1,000,000 bytes);
    where keys are required one owner's are three quarters of it at most. Each takes two to four
    times its length of memory."""
    max_question_chars: int = Field(default=4000, ge=1)
    """The longest question."""
    max_name_chars: int = Field(default=255, ge=8)
    """The longest name of a file, in characters."""

    parse_timeout_s: float = Field(default=600.0, gt=0)
    """How long reading the text of one file may take."""
    parse_memory_mb: int = Field(default=4096, ge=64)
    """Memory that reading the text of one file may take, in a process of its own."""
    parse_max_pages: int = Field(default=5000, ge=1)
    """The longest PDF, in pages."""
    chunk_chars: int = Field(default=1200, ge=200)
    """The longest passage that search finds, in characters."""
    anchors_per_block: int = Field(default=64, ge=1)
    """Tokens of a block that later blocks see when reading is chained."""

    ingest_workers: int = Field(default=2, ge=1, le=64)
    """Documents parsed and indexed at the same time in this process; beside them up to two more
    that are short."""
    ingest_attempts: int = Field(default=3, ge=1)
    """Starts of one job before it fails as `interrupted`."""
    heartbeat_s: float = Field(default=5.0, gt=0)
    """How often a process says that it lives; after six missed beats its jobs are free."""
    documents_in_memory: int = Field(default=8, ge=1)
    """Documents whose text and search index stay loaded."""
    busy_timeout_s: float = Field(default=30.0, gt=0)
    """How long a writer waits for the database."""
    drain_s: float = Field(default=20.0, ge=0)
    """How long running answers may go on after SIGTERM or Ctrl-C."""
    thread_turn_s: float = Field(default=0.0001, gt=0, le=1)
    """How long a thread of the server keeps the interpreter while the engine's waits for it."""
    stream_grace_s: float = Field(default=0.5, ge=0)
    """How long an answer goes on whose last reader has left: who lost the connection may come back.
    A server hears of a lost connection late or never, so who is known to have left mostly meant
    to."""
    engine_stall_s: float = Field(default=120.0, gt=0)
    """An engine that is at one step for longer hangs, as far as /readyz is concerned: a step takes
    seconds at most, on a slow CPU too."""

    gpu_pause_c: float = Field(default=85.0, gt=0)
    """Degrees Celsius of a GPU's core or memory at which no new work begins."""
    gpu_resume_c: float = Field(default=75.0, gt=0)
    """Degrees at which it begins again."""

    step_every: int | None = Field(default=None, ge=0)
    """How long the engine's steps take is measured for one in so many of each kind; 0 measures
    none. None is every step on a CPU and none on a GPU, where measuring has not been tried yet."""
    otel_endpoint: str | None = None
    """Where spans of finished answers are sent, as OpenTelemetry's OTLP over HTTP:
    http://localhost:4318/v1/traces. Needs the extra `otel`; None sends nothing."""

    log_level: LogLevel = "INFO"
    """The least grave messages that are logged."""
    log_json: bool = False
    """Log lines as JSON objects, for programs that collect them."""

    @field_validator("data_dir", "cache_dir")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            url = make_url(value)
        except ArgumentError as error:
            raise ValueError("not a database URL, such as postgresql+psycopg://host/db") from error
        if url.drivername == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        if url.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
            raise ValueError(f"{url.drivername} is not supported; use sqlite or postgresql+psycopg")
        if url.drivername.startswith("sqlite") and not url.database:
            raise ValueError("an SQLite URL needs a file: sqlite:////folder/fineprint.sqlite")
        return url.render_as_string(hide_password=False)

    @field_validator("remote_urls")
    @classmethod
    def _known_servers(cls, value: str | None) -> str | None:
        for url in (value or "").split(","):
            parts = urlsplit(url.strip())
            if value is not None and (parts.scheme not in ("http", "https") or not parts.hostname):
                raise ValueError(f"{url.strip()!r} is no base URL, such as http://10.0.0.5:8000/v1")
        return value

    @model_validator(mode="after")
    def _named_model(self) -> Settings:
        if self.remote_urls is not None and not self.remote_model:
            raise ValueError("FINEPRINT_REMOTE_URLS needs FINEPRINT_REMOTE_MODEL, the model's name")
        return self

    @model_validator(mode="after")
    def _cooler_again(self) -> Settings:
        if self.gpu_resume_c >= self.gpu_pause_c:
            raise ValueError("FINEPRINT_GPU_RESUME_C must be below FINEPRINT_GPU_PAUSE_C")
        return self

    @property
    def several_owners(self) -> bool:
        """Whether there may be more than one owner: each request then needs a key, and nobody's
        work may keep another's out."""
        return self.api_keys == "required"

    @property
    def remote_servers(self) -> tuple[str, ...]:
        """Base URLs of the model servers; empty for the bundled engine."""
        return tuple(url.strip() for url in (self.remote_urls or "").split(",") if url.strip())

    @property
    def database(self) -> str:
        """SQLAlchemy URL of the database in use."""
        return self.database_url or f"sqlite:///{self.data_dir / 'fineprint.sqlite'}"

    @property
    def max_upload_bytes(self) -> int:
        """Upload limit in bytes (1 MB = 1,000,000 bytes)."""
        return self.max_upload_mb * 1_000_000

    @property
    def anchors(self) -> int:
        """Anchor tokens to pick per block; 0 when nobody would look at them."""
        return self.anchors_per_block if self.reading == "chained" else 0

    @property
    def files_dir(self) -> Path:
        """Original files, by SHA-256."""
        return self.data_dir / "files"

    @property
    def derived_dir(self) -> Path:
        """What is computed from a document and too big for the database, by document id."""
        return self.data_dir / "derived"

    @property
    def kv_dir(self) -> Path:
        """KV pages, by document."""
        return self.data_dir / "kv"

    @property
    def kv_disk_bytes(self) -> int:
        """The most that KV pages may take of the disk."""
        if self.kv_disk_mb is not None:
            return self.kv_disk_mb * 1_000_000
        folder = self.data_dir
        while not folder.exists():
            folder = folder.parent
        # What pages take already is theirs: without it the share would shrink at every start.
        held = sum(path.stat().st_blocks for path in self.kv_dir.glob("*.safetensors")) * 512
        return int((shutil.disk_usage(folder).free + held) * KV_DISK_SHARE)


def load_settings(**overrides: object) -> Settings:
    """Settings from the environment, with `overrides` (of the command line) on top.

    Raises BadSettings naming every wrong variable.
    """
    unknown = unknown_variables(os.environ)
    if unknown:
        raise BadSettings("; ".join(unknown))
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        problems = []
        for problem in error.errors():
            field = ".".join(str(part) for part in problem["loc"])
            problems.append(f"{PREFIX}{field.upper()}: {problem['msg']}")
        raise BadSettings("Wrong settings. " + "; ".join(problems)) from error


def spin_less() -> None:
    """Have threads of OpenMP wait busily for a shorter time, unless the environment says something
    about it; for a process that has not imported torch yet.

    Between two operations a thread spins for the next one. Where another process wants its core
    (one that takes in a document, say) all threads of the engine wait for one that spins no more
    but was put aside: beside one busy process on two cores a block of 512 tokens did not come in a
    minute with GOMP's own count, in 1.8 s with this one, and alone it took 0.40 s instead of 0.35.
    """
    if not _SPINNING & os.environ.keys():
        os.environ["GOMP_SPINCOUNT"] = "10000"


def child_environment(**changes: str) -> dict[str, str]:
    """This process's environment for a child process, with `changes`."""
    return {**os.environ, **changes}


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """One sentence for each `FINEPRINT_` variable that no setting has, with the nearest name."""
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    sentences = []
    for name in sorted(environment):
        upper = name.upper()
        if not upper.startswith(PREFIX) or upper.startswith(TEST_PREFIX) or upper in known:
            continue
        near = difflib.get_close_matches(upper, known, n=1)
        hint = f"did you mean {near[0]}?" if near else "remove it."
        sentences.append(f"Unknown setting {name}: {hint}")
    return sentences
