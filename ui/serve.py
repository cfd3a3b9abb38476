"""`fineprint serve`: the REST API and the page in one process.

Nothing is opened before the port is ours, and the port is opened only when the model is loaded: who
can connect can ask. The server says that it is ready once the model has answered a first prompt.
How it ends is told in `ui.draining`.
"""

from __future__ import annotations

import errno
import signal
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.reporting import BAD_INPUT, DataDirOption, ModelOption, fail, note, reporting
from ui.ending import Ending

if TYPE_CHECKING:
    from app.settings import Settings

GRACE_SECONDS = 5
"""For the last bytes of replies, once all answers are over."""
KEEP_ALIVE_SECONDS = 75
"""That a connection may idle. Longer than any wait that Retry-After asks for: at its default of
five seconds uvicorn closes connections at the very moment when clients come back on them."""
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
WILDCARDS = frozenset({"0.0.0.0", "::"})
SAMPLES = Path(__file__).parent.parent / "samples"


def command(
    host: Annotated[
        str | None, typer.Option(help="Address to listen on [127.0.0.1].", show_default=False)
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port; 0 takes a free one [8000].", show_default=False),
    ] = None,
    model: ModelOption = None,
    data_dir: DataDirOption = None,
    pull: Annotated[
        bool, typer.Option("--pull", help="Fetch the model first if it is not here.")
    ] = False,
    sample: Annotated[bool, typer.Option("--sample", help="Take in the sample contracts.")] = False,
) -> None:
    """Serve the page, the REST API and the metrics until SIGTERM or Ctrl-C."""
    from app.settings import load_settings, spin_less

    spin_less()
    ending = Ending()
    with ending.finally_leaving(), reporting(as_json=False), ExitStack() as stack:
        settings = load_settings(host=host, port=port, model=model, data_dir=data_dir)
        listener = stack.enter_context(bind(settings.host, settings.port))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, ending.leave)
        _serve(settings, listener, ending, pull=pull, sample=sample)


def bind(host: str, port: int) -> socket.socket:
    """A bound socket that does not listen yet. Ends the command when the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named: asyncio turns Nagle's algorithm off only for sockets that say TCP.
    # With it on, small events of a stream wait up to 40 ms for the client's acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        fail(
            False,
            "port_taken" if error.errno == errno.EADDRINUSE else "cannot_listen",
            f"Can't listen on {host}:{port} ({error.strerror}). {_remedy(error)}",
            BAD_INPUT,
        )
    return listener


def _remedy(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "Stop the program that uses it, or choose another port with --port."
    if error.errno == errno.EACCES:
        return "Choose a port above 1023 with --port."
    return "Give --host an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all."


def _serve(
    settings: Settings, listener: socket.socket, ending: Ending, *, pull: bool, sample: bool
) -> None:
    # Here, not above: the command line must not wait for the engine's libraries to load.
    import uvicorn

    from app.api import create_app
    from app.cli.models import pull_shown
    from app.logs import configure_logging
    from app.models import resolve
    from app.services import open_services
    from ui.app import mount
    from ui.draining import DrainingServer, Work

    configure_logging(settings)
    if pull:
        pull_shown(settings)
    # Before the data folder is touched: without a model nothing can be served.
    resolve(settings)
    host, port = listener.getsockname()[:2]
    url = f"http://{_in_url('127.0.0.1' if host in WILDCARDS else host)}:{port}"
    with open_services(settings, serve=True) as services:
        if sample:
            for path in sample_files():
                record, known = services.library.add(path, path.name)
                note(f"sample: {record.name}" + (" (already here)" if known else ""))
        api = create_app(services, local_only=settings.host in LOOPBACK)
        app = mount(api, f"{url}/api/v1", settings)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )
        server = DrainingServer(
            config,
            ending,
            Work(services, api.state.runs, api.state.completions),
            ready=f"Fineprint is at {url} (API: {url}/docs). Ctrl-C stops it.",
        )
        server.run(sockets=[listener])
        if server.failure is not None:
            raise server.failure


def sample_files() -> tuple[Path, ...]:
    """The sample contracts that came with the source, the PDFs."""
    found = tuple(sorted(SAMPLES.glob("*.pdf")))
    if not found:
        fail(
            False,
            "no_samples",
            f"There are no sample contracts in {SAMPLES}; they come with the source tree.",
            BAD_INPUT,
        )
    return found


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
