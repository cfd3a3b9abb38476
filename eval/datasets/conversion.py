"""Question sets of any form into the project's own, from a local path or the hub."""

from __future__ import annotations

import tempfile
from pathlib import Path

from eval.datasets.forms import FORMS, Form, detect_form, open_dataset
from eval.datasets.hub import Snapshot, fetch, pick
from eval.datasets.writing import Written, write_jsonl


def convert(source: Path, out: Path, form: Form | None = None) -> tuple[Form, Written]:
    """Writes the documents of `source` to `out`, and gives the form that was read. Raises
    DatasetError."""
    found = form or detect_form(source)
    return found, write_jsonl(open_dataset(source, found), out)


def convert_from_hub(
    repo_id: str,
    out: Path,
    form: Form,
    *,
    file: str | None = None,
    revision: str | None = None,
    snapshot: Snapshot | None = None,
) -> tuple[Form, Written]:
    """Fetches a data set and converts it. Raises DatasetError and HubUnavailable."""
    with tempfile.TemporaryDirectory(prefix="fineprint-hub-") as unpacked:
        folder = fetch(repo_id, Path(unpacked), revision=revision, snapshot=snapshot)
        return convert(pick(folder, file, whole=FORMS[form].folders), out, form)
