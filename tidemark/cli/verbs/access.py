"""`tidemark access …`: tokens, and what an access file allows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemark.cli.terminal.exit_status import ExitStatus, say
from tidemark.cli.terminal.output import Output, OutputOption, print_json, print_table

if TYPE_CHECKING:
    from tidemark.access.right import Right

app = typer.Typer(no_args_is_help=True, help="Tokens, and who may do what by an access file.")


@app.callback()
def _access() -> None:
    """Tokens, and who may do what by an access file."""


@app.command(epilog="Example: tidemark access token > orders.token")
def token(output: OutputOption = Output.TABLE) -> None:
    """Make a token: it alone goes to standard output, and its hash, for the access file, to standard error.

    The services keep the hash only: a token that is lost is replaced.
    """
    from tidemark.access.tokens import hash_token, make_token

    made = make_token()
    if output is Output.JSON:
        print_json({"token": made, "token_sha256": hash_token(made)})
        return
    typer.echo(made)
    say(f'token_sha256 = ["{hash_token(made)}"]')


@app.command(epilog="Example: tidemark access check access.toml --as orders --may 'Pub Topic:orders-eu'")
def check(
    file: Annotated[Path, typer.Argument(help="The access file.")],
    principal: Annotated[str | None, typer.Option("--as", help="A principal of it.")] = None,
    may: Annotated[
        list[str] | None, typer.Option(metavar="'ACTION RESOURCE'", help="What to ask: 'Sub Topic:t'. Repeatable.")
    ] = None,
    role: Annotated[list[str] | None, typer.Option(help="A role that a token would give. Repeatable.")] = None,
    source: Annotated[str, typer.Option("--from", metavar="IP", help="Where the principal is.")] = "127.0.0.1",
    output: OutputOption = Output.TABLE,
) -> None:
    """Check an access file as a service does when it starts; and what somebody may.

    Exit status 5 where a service would refuse the file, 1 where something that was asked is not allowed.
    """
    from tidemark.access.access_file import AccessFile
    from tidemark.access.identity import Identity

    loaded = AccessFile(file).load()
    if principal is None:
        if may:
            raise typer.BadParameter("who? give --as PRINCIPAL", param_hint="--may")
        say(f"{file}: good")
        return
    identity = Identity(principal, loaded.authenticator.roles_of(principal) | frozenset(role or ()))
    asked = [_right(text) for text in may or []]
    answers = [(str(right), loaded.policy.allows(identity, right, source)) for right in asked]
    if output is Output.JSON:
        rights = [{"right": right, "allowed": allowed} for right, allowed in answers]
        print_json({"principal": principal, "roles": sorted(identity.roles), "rights": rights})
    else:
        print_table(("right", "allowed"), [(right, "yes" if allowed else "no") for right, allowed in answers])
    if not all(allowed for _, allowed in answers):
        raise typer.Exit(ExitStatus.FAILED)


def _right(text: str) -> Right:
    from tidemark.access.right import Action, Kind, Right, on_topic

    action, _, resource = text.partition(" ")
    kind, _, name = resource.partition(":")
    try:
        asked, kind_asked = Action(action), Kind(kind)
    except ValueError:
        raise typer.BadParameter(f"{text!r}: write 'Pub Topic:name'", param_hint="--may") from None
    return on_topic(name, asked) if kind_asked is Kind.TOPIC else Right(kind_asked, name, (asked,))
