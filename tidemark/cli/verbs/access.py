"""`tidemark access …`: make tokens, and check access files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemark.cli.terminal.exit_status import ExitStatus, say
from tidemark.cli.terminal.output import Output, OutputOption, print_json, print_table

if TYPE_CHECKING:
    from tidemark.access.right import Right

app = typer.Typer(no_args_is_help=True, help="Make tokens, and check access files.")


@app.callback()
def _access() -> None:
    """Make tokens, and check access files."""


@app.command(epilog="Example: tidemark access token > orders.token")
def token(output: OutputOption = Output.TABLE) -> None:
    """Make a token. Print it on standard output, and its hash, for the access file, on standard error.

    The services store only the hash, so a lost token cannot be recovered: make a new one.
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
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The access file.")],
    principal: Annotated[
        str | None, typer.Option("--as", help="Check the rights of this principal of the file.")
    ] = None,
    may: Annotated[
        list[str] | None,
        typer.Option(metavar="'ACTION RESOURCE'", help="Check this right, such as 'Sub Topic:t'. Repeatable."),
    ] = None,
    role: Annotated[
        list[str] | None, typer.Option(help="Add a role, as from the principal's token. Repeatable.")
    ] = None,
    source: Annotated[
        str, typer.Option("--from", metavar="IP", help="Address from which the principal connects.")
    ] = "127.0.0.1",
    output: OutputOption = Output.TABLE,
) -> None:
    """Check an access file as a service does at its start, and what a principal is allowed to do.

    Exit status 5 if a service would refuse the file, 1 if a right of --may is not allowed.
    """
    from tidemark.access.access_file import AccessFile
    from tidemark.access.identity import Identity

    loaded = AccessFile(file).load()
    if principal is None:
        if may:
            raise typer.BadParameter("needs --as PRINCIPAL", param_hint="--may")
        say(f"{file}: good")
        return
    known = loaded.authenticator.principals
    if principal not in known and not role and not principal.startswith("jwt:"):
        raise typer.BadParameter(
            f"the file has no principal {principal!r}; it has {', '.join(sorted(known)) or 'none'}", param_hint="--as"
        )
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
    from tidemark.access.right import Action, ResourceKind, Right, on_topic

    action, _, resource = text.partition(" ")
    kind, _, name = resource.partition(":")
    try:
        asked, kind_asked = Action(action), ResourceKind(kind)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a right: write 'Pub Topic:name'", param_hint="--may") from None
    return on_topic(name, asked) if kind_asked is ResourceKind.TOPIC else Right(kind_asked, name, (asked,))
