"""`fineprint doctor`. Its work is in `app.cli.examination`, loaded when it is needed."""

from __future__ import annotations

import dataclasses

import typer

from app.cli.reporting import FAILURE, DataDirOption, JsonOption, ModelOption, emit, reporting


def command(
    as_json: JsonOption = False, model: ModelOption = None, data_dir: DataDirOption = None
) -> None:
    """Check this machine, the model, GPUs, database, locks and port. Changes nothing."""
    from app.cli.examination import examine
    from app.settings import load_settings

    with reporting(as_json):
        findings = tuple(examine(load_settings(model=model, data_dir=data_dir)))
    healthy = all(finding.ok for finding in findings)
    if as_json:
        emit({"ok": healthy, "checks": [dataclasses.asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            typer.echo(f"{'ok  ' if finding.ok else 'FAIL'} {finding.name}: {finding.detail}")
    if not healthy:
        raise typer.Exit(FAILURE)
