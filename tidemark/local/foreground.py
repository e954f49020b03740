"""`tidemark serve`: writer, pipeline and query in one terminal; one Ctrl-C stops all of them."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.panel import Panel

from tidemark.errors import StoreClosedError, StoreError
from tidemark.local.local_stack import START_TIMEOUT_S, LocalStack, ServiceDiedError
from tidemark.store.paths import require_outside

_CHECK_S = 0.5


def serve(
    data: Path,
    *,
    writer_port: int,
    query_port: int,
    writer_remoting_port: int | None = None,
    query_remoting_port: int | None = None,
    console: Console,
    small_new_files: bool = True,
    start_timeout_s: float = START_TIMEOUT_S,
    environment: Mapping[str, str] | None = None,
) -> int:
    """Run the services until a signal (return 0), or until one fails to start or ends by itself (return 1).

    The signals are SIGINT and SIGTERM.
    """
    stack = LocalStack(
        data,
        writer_port=writer_port,
        query_port=query_port,
        writer_remoting_port=writer_remoting_port,
        query_remoting_port=query_remoting_port,
        small_new_files=small_new_files,
        start_timeout_s=start_timeout_s,
        environment=environment,
    )
    return _run_until_signal(stack, console)


def attach(
    data: Path, state: Path, *, query_port: int, console: Console, start_timeout_s: float = START_TIMEOUT_S
) -> int:
    """Run query and a follower for a broker's store at *data*, with Tidemark's own files in *state*; see `serve`."""
    try:
        require_outside(state, data)
    except ValueError as error:
        console.print(str(error), style="bold red", markup=False)
        return 1
    if not data.is_dir():  # otherwise a wrong path would look like an empty store
        console.print(f"the directory {data} does not exist", style="bold red", markup=False)
        return 1
    stack = LocalStack(data, state=state, query_port=query_port, start_timeout_s=start_timeout_s)
    return _run_until_signal(stack, console)


def _run_until_signal(stack: LocalStack, console: Console) -> int:
    previous = [
        (number, signal.signal(number, lambda *_: stack.stopping.set())) for number in (signal.SIGINT, signal.SIGTERM)
    ]
    try:
        return _run(stack, console)
    finally:
        for number, handler in previous:
            signal.signal(number, handler)


def _run(stack: LocalStack, console: Console) -> int:
    status = 0
    try:
        stack.start(
            on_step=lambda name: console.print(f"starting {name} …"),
            on_wait=lambda name, seconds: console.print(_waiting(stack, name, seconds), markup=False, soft_wrap=True),
        )
        _show_screen(stack, console)
        while not stack.stopping.wait(_CHECK_S):
            stack.check()
    except StoreClosedError:
        console.print("stopped before all services were healthy")
    except StoreError as error:
        _print_error(error, console)
        status = 1
    _stop(stack, console)
    return status


def _waiting(stack: LocalStack, name: str, seconds: float) -> str:
    limit = f"at most {stack.start_timeout_s:.0f} s"
    return f"waiting for {name} for {seconds:.0f} s ({limit}); its log: {stack.logs / name}.log"


def _stop(stack: LocalStack, console: Console) -> None:
    for name, status in stack.stop().items():
        if status == 0:
            console.print(f"{name} stopped")
        else:
            console.print(f"{name} stopped with exit status {status}; see {stack.logs / name}.log", style="yellow")


def _print_error(error: StoreError, console: Console) -> None:
    console.print(error.message, style="bold red")
    if isinstance(error, ServiceDiedError):
        console.print(f"the end of {error.log_path}:", style="dim")
        for line in error.last_lines:
            console.print(f"  {error.name} │ {line}", markup=False, highlight=False, soft_wrap=True)


def _show_screen(stack: LocalStack, console: Console) -> None:
    append = f"gRPC  [cyan]{stack.writer_address}[/]"
    if stack.state is not None:
        append = "off: attached, read-only"
    elif stack.followed:
        append = f"off: follows {stack.followed}"
    addresses = [address for address in (stack.writer_remoting_address, stack.query_remoting_address) if address]
    remoting = ";".join(addresses) or "off"
    console.print(
        Panel(
            f"""\
[bold]append[/]  {append}
[bold]query[/]   REST  [cyan]{stack.query_url}[/]
[bold]RocketMQ[/] NAMESRV_ADDR  [cyan]{remoting}[/]
[bold]console[/]       [cyan]{stack.query_url}/console[/]
[bold]docs[/]          [cyan]{stack.query_url}/docs[/]
[bold]store[/]         {stack.data}
[bold]logs[/]          {stack.logs}""",
            title="Tidemark",
            expand=False,
        )
    )
    if stack.state is not None or stack.followed:
        console.print(f"curl {stack.query_url}/v1/topics", style="green", markup=False, soft_wrap=True)
        console.print("Ctrl-C stops everything.")
        return
    topic = f"{stack.query_url}/v1/topics/orders"
    for line in (  # outside the panel, so that they are easy to copy
        f"curl -X POST {topic}/messages -H 'content-type: application/json' \\",
        """  -d '{"messages": [{"body": "hello"}], "queue_id": 0}'""",
        f"curl -N '{stack.query_url}/v1/pull?topic=orders&follow=true'",
    ):
        console.print(line, style="green", markup=False, highlight=False, soft_wrap=True)
    console.print("Ctrl-C stops everything.")
