"""A run from what was asked for to its summary: draw, open, ask what is left, summarise.

The folder is named by what is measured, so the same command goes on with the same run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.settings import load_settings
from app.storage import sha256_file
from eval.datasets import Form
from eval.environment import environment
from eval.errors import DatasetError, RunError
from eval.metrics import summarise
from eval.runs.answerers import Answerer, RetrievalAnswerer
from eval.runs.asking import ask_all
from eval.runs.folder import RunFolder
from eval.runs.progress import Progress
from eval.runs.sampling import Sample, Wanted, draw_sample
from eval.runs.switches import Switches, parse_switches
from eval.types import Mode

DEFAULT_PARENT = Path("eval-runs")


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What the command line asks for. `peer_timeout_s`: seconds for one answer of a peer."""

    data: tuple[Path, ...]
    mode: Mode
    wanted: Wanted
    form: Form | None = None
    out: Path | None = None
    switches: tuple[str, ...] = ()
    model: str | None = None
    device: str | None = None
    endpoint: str | None = None
    peer_model: str | None = None
    api_key_file: Path | None = None
    peer_timeout_s: float = 300.0
    restart: bool = False
    retry_failed: bool = False


@dataclass(frozen=True, slots=True)
class _Opened:
    """A mode that can be asked, what it is (for the run's configuration), and its device."""

    answerer: Answerer
    identity: Mapping[str, object]
    device: str = "cpu"


def run(request: RunRequest, tell: Callable[[str], None], *, bar: bool | None) -> dict[str, object]:
    """Ask every question that has no record yet and give the summary, with the folder as `run`.

    `tell` is given sentences for the person who waits. Raises BadSwitch, DatasetError, RunError,
    PeerError and what opening the model raises.
    """
    switches = parse_switches(request.mode, request.switches)
    _check(request)
    sample = draw_sample(request.data, request.form, request.wanted)
    with _opened(request, switches) as opened:
        config = _config(request, switches, sample, opened.identity)
        place = request.out or DEFAULT_PARENT / f"{request.mode}-{_short_hash(config)}"
        session = environment(opened.device) | {"source_sha256": source_digest()}
        folder = RunFolder.open(place, config, session, restart=request.restart)
        with folder:
            skip = frozenset(
                record.qid
                for record in folder.records.values()
                if not (request.retry_failed and record.status == "failed")
            )
            left = len(sample.listed) - len(skip)
            if left:
                folder.ask_again(session)
            tell(_beginning(folder, sample, left))
            if mixed := _mixed(folder, left, session):
                tell(
                    "Records here were made by another state of this program's source: they may "
                    "differ from new ones in more than luck. --restart measures all with this one."
                )
            with Progress(len(sample.listed), len(skip), bar=bar) as progress:
                ask_all(
                    sample, opened.answerer, folder, lambda r: progress.ended(r.status), skip=skip
                )
            records = [folder.records[item.name] for item in sample.listed]
            summary = summarise(records, seed=request.wanted.seed) | {
                "mode": request.mode,
                "mixed_sources": mixed,
            }
            folder.finish(summary)
    return {**summary, "run": str(place)}


def _check(request: RunRequest) -> None:
    """What can be known to be wrong before anything is opened."""
    if not request.data:
        raise DatasetError("No question set. Name at least one file with --data.")
    for path in request.data:
        if not path.exists():
            raise DatasetError(f"There is no file {path}. Correct --data.")
    if request.mode == "peer" and not (request.endpoint and request.peer_model):
        raise RunError("Mode peer needs --endpoint URL and --peer-model NAME.")
    if request.mode != "peer" and (request.endpoint or request.peer_model):
        raise RunError(f"--endpoint and --peer-model belong to --mode peer, not {request.mode}.")
    if request.mode in ("bm25", "peer") and (request.model or request.device):
        raise RunError(f"Mode {request.mode} opens no model: leave --model and --device out.")


def source_digest() -> str:
    """SHA-256 over this program's own source files: two runs are of one program when it is equal,
    also where nothing was committed."""
    root = Path(__file__).resolve().parents[2]
    whole = hashlib.sha256()
    for package in ("app", "backend", "eval", "kvstore", "retrieval"):
        for path in sorted((root / package).rglob("*")):
            if path.suffix in (".py", ".toml"):
                whole.update(f"{path.relative_to(root)}\0{sha256_file(path)}\n".encode())
    return whole.hexdigest()


def _mixed(folder: RunFolder, left: int, session: Mapping[str, object]) -> bool:
    """Whether the records of the run are not all made by one state of the source."""
    sources = {environment.get("source_sha256") for environment in folder.environments}
    return len(sources | {session["source_sha256"]} if left else sources) > 1


def _beginning(folder: RunFolder, sample: Sample, left: int) -> str:
    total = len(sample.listed)
    if not left:
        return f"All {total} questions have ended in {folder.folder}; summed up again."
    going = "" if left == total else f" ({total - left} have ended before)"
    return f"{left} questions on {sample.documents} documents{going}, in {folder.folder}"


@contextmanager
def _opened(request: RunRequest, switches: Switches) -> Iterator[_Opened]:
    settings = load_settings(
        model=request.model, device=request.device, **switches.engine_settings()
    )
    seed, chunk_chars = request.wanted.seed, settings.chunk_chars
    if request.mode == "bm25":
        yield _Opened(RetrievalAnswerer(switches, seed, chunk_chars), {"chunk_chars": chunk_chars})
        return
    if request.mode == "peer":
        from eval.runs.peer_answers import PeerAnswerer
        from eval.runs.peer_client import PeerClient

        client = PeerClient(
            request.endpoint or "", request.peer_model or "",
            api_key=_key(request.api_key_file), timeout_s=request.peer_timeout_s,
        )  # fmt: skip
        with closing(client):
            client.check()
            yield _Opened(
                PeerAnswerer(client, switches, seed, chunk_chars),
                {
                    "chunk_chars": chunk_chars,
                    "endpoint": client.shown_endpoint,
                    "peer_model": client.model,
                },
            )
        return
    # Here, because torch takes seconds to import.
    from app.services import open_engine
    from eval.runs.engine_answers import DenseAnswerer, EngineAnswerer

    with closing(open_engine(settings)) as engine:
        identity = {
            "chunk_chars": chunk_chars,
            "model": settings.model,
            "fingerprint": engine.fingerprint,
            "device": engine.settings.device,
            "precision": engine.settings.resolved_precision(),
            "block_tokens": engine.block_tokens,
            "block_cuts": settings.block_cuts,
            "kv_format": engine.settings.kv_format,
            "reading": engine.settings.reading,
            "anchors_per_block": settings.anchors,
            "threads": engine.settings.threads or None,
        }
        answerer: Answerer
        if request.mode == "dense":
            answerer = DenseAnswerer(engine, switches)
        else:
            answerer = EngineAnswerer(
                engine,
                request.mode,
                switches,
                seed,
                chunk_chars,
                settings.anchors,
                settings.block_cuts,
            )
        yield _Opened(answerer, identity, engine.settings.device)


def _key(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        key = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise RunError(f"The key file {path} can't be read: {error.strerror}.") from error
    if not key or not key.isascii() or any(c.isspace() for c in key):
        raise RunError(f"{path} holds no key: it must be one word of ASCII characters.")
    return key


def _config(
    request: RunRequest, switches: Switches, sample: Sample, identity: Mapping[str, object]
) -> dict[str, object]:
    """What makes this run the run it is. Where the files lie is not part of it."""
    wanted = request.wanted
    return {
        "mode": request.mode,
        "switches": dict(switches.given),
        "resolved": dict(switches.resolved),
        "data": [_file(path) for path in request.data],
        "form": request.form,
        "limit": wanted.limit,
        "seed": wanted.seed,
        "only": wanted.only,
        "min_tokens": wanted.min_tokens,
        "max_tokens": wanted.max_tokens,
        "lang": wanted.lang,
        "sample": {
            "questions": len(sample.listed),
            "documents": sample.documents,
            "sha256": sample.digest,
        },
        "engine": dict(identity),
    }


def _file(path: Path) -> dict[str, object]:
    """Name, size and SHA-256 of a file, or of all files of a folder."""
    if path.is_file():
        return {"name": path.name, "bytes": path.stat().st_size, "sha256": sha256_file(path)}
    inside = sorted(child for child in path.rglob("*") if child.is_file())
    return {
        "name": path.name,
        "bytes": sum(child.stat().st_size for child in inside),
        "sha256": _hash_all(path, inside),
    }


def _hash_all(folder: Path, files: Sequence[Path]) -> str:
    whole = hashlib.sha256()
    for path in files:
        whole.update(f"{path.relative_to(folder)}\0{sha256_file(path)}\n".encode())
    return whole.hexdigest()


def _short_hash(config: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:10]
