"""Fetches a question set from the Hugging Face hub, a convenience: everything else reads local
paths.

Knows no form. Archives are unpacked, text and JSON files only.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from eval.errors import DatasetError, HubUnavailable

_KINDS = (".json", ".jsonl", ".txt")
_PATTERNS = ["*.json", "*.jsonl", "*.txt", "*.zip"]
MAX_UNPACKED_BYTES = 8 << 30
"""LongBench v2, the largest set that is read, has half a gigabyte."""

Snapshot = Callable[..., str]
"""As `huggingface_hub.snapshot_download`: takes `repo_id, repo_type, revision, allow_patterns`,
gives the folder."""


def fetch(
    repo_id: str, folder: Path, *, revision: str | None = None, snapshot: Snapshot | None = None
) -> Path:
    """The folder with the files of a data set: the hub's cache, or `folder` with its archives
    unpacked when it has any.

    Raises DatasetError for a name that leads nowhere, HubUnavailable when the hub can't be reached.
    """
    try:
        from huggingface_hub import errors, snapshot_download
    except ImportError as error:
        raise HubUnavailable(
            "The package huggingface_hub is not installed. Install it (pip install "
            "huggingface_hub), or download the set by hand and give its path."
        ) from error
    take = snapshot or snapshot_download
    try:
        found = Path(
            take(repo_id=repo_id, repo_type="dataset", revision=revision, allow_patterns=_PATTERNS)
        )
    except (
        errors.RepositoryNotFoundError,
        errors.RevisionNotFoundError,
        errors.HFValidationError,
    ) as error:
        at = f" at {revision}" if revision else ""
        raise DatasetError(
            f"There is no data set {repo_id!r}{at} on the hub, or it is not open to you. Check the "
            "name (OWNER/NAME) and that you have accepted its terms."
        ) from error
    except (errors.HfHubHTTPError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise HubUnavailable(
            f"The data set {repo_id!r} could not be fetched ({reason}). Check the network, or "
            "download the set by hand and give its path."
        ) from error
    archives = sorted(found.rglob("*.zip"))
    for archive in archives:
        _unpack(archive, folder / archive.stem)
    return folder if archives else found


def pick(folder: Path, name: str | None, whole: bool) -> Path:
    """The file of a fetched set that `name` ends ("dev.json", "data/dev.json"); without a name the
    whole folder when the form is read as one, else the only file there is.

    Raises DatasetError, which lists the files.
    """
    if name is None and whole:
        return folder
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".json", ".jsonl"))
    wanted = PurePosixPath(name).parts if name is not None else ()
    fit = [path for path in files if not wanted or path.parts[-len(wanted) :] == wanted]
    if len(fit) == 1:
        return fit[0]
    listed = [path.relative_to(folder).as_posix() for path in fit or files]
    shown = ", ".join(listed[:20]) or "none"
    problem = f"{len(fit)} of its files fit" if wanted else f"the set has {len(files)} files"
    raise DatasetError(f"It is not clear what to read: {problem}. Name one with --file: {shown}.")


def _unpack(archive: Path, folder: Path) -> None:
    try:
        with zipfile.ZipFile(archive) as packed:
            members = [info for info in packed.infolist() if Path(info.filename).suffix in _KINDS]
            size = sum(info.file_size for info in members)
            if size > MAX_UNPACKED_BYTES:
                raise DatasetError(
                    f"{archive} would unpack to {size:,} bytes; the limit is "
                    f"{MAX_UNPACKED_BYTES:,}. Unpack it by hand and give the path."
                )
            for info in members:
                # extract() keeps names such as "../x" inside the folder.
                packed.extract(info, folder)
    except zipfile.BadZipFile as error:
        raise DatasetError(f"{archive} is a damaged archive ({error}). Fetch it again.") from error
