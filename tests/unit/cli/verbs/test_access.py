"""`tidemark access`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.access_files import AccessFolder
from tidemark.cli.main import app
from tidemark.cli.terminal.exit_status import ExitStatus


def run(*arguments: str) -> tuple[int, str, str]:
    """Return the exit status, standard output and standard error."""
    done = CliRunner().invoke(app, ["access", *arguments])
    return done.exit_code, done.stdout, done.stderr


def test_a_token_is_valid_with_its_printed_hash(tmp_path: Path) -> None:
    """Only the token goes to standard output, so that it can be redirected to a file."""
    status, token, told = run("token")
    assert status == ExitStatus.OK
    path = tmp_path / "access.toml"
    path.write_text(f'version = 1\n[[principal]]\nname = "orders"\n{told}')
    from tidemark.access.access_file import AccessFile
    from tidemark.access.identity import Presented

    known = AccessFile(path).load().authenticator.identify(Presented(token.strip(), None))
    assert known.identity.name == "orders"
    assert token.strip() not in told


def test_json_output_has_token_and_hash() -> None:
    """They are printed as JSON."""
    made = json.loads(run("token", "--output", "json")[1])
    assert hashlib.sha256(made["token"].encode()).hexdigest() == made["token_sha256"]


def test_two_tokens_differ() -> None:
    """A token is long enough not to be guessed."""
    tokens = {run("token")[1].strip() for _ in range(20)}
    assert len(tokens) == 20
    assert min(map(len, tokens)) >= 43 + len("tidemark_")


def test_an_access_file_is_checked_as_by_a_service(tmp_path: Path) -> None:
    """The messages are the service's."""
    files = AccessFolder(tmp_path)
    assert run("check", str(files.path))[0] == ExitStatus.OK
    files.path.write_text("version = 1\n[[rule]]\n")
    status, _, told = run("check", str(files.path))
    assert status == ExitStatus.UNAVAILABLE
    assert "rule.0.resources: Field required" in told


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (["Pub Topic:orders-eu"], ExitStatus.OK),
        (["Pub Topic:orders-eu", "Sub Topic:orders-eu"], ExitStatus.FAILED),
        (["Pub Topic:bills"], ExitStatus.FAILED),
        (["Publish Topic:bills"], ExitStatus.USAGE),
        (["Pub bills"], ExitStatus.USAGE),
    ],
)
def test_the_rights_of_a_principal_are_reported(tmp_path: Path, asked: list[str], status: ExitStatus) -> None:
    """The exit status reports it too, for a check in a pipeline."""
    files = AccessFolder(tmp_path)
    files.principal("orders")
    files.rule("orders", ["Pub"], "Topic:orders-*")
    rights = [word for one in asked for word in ("--may", one)]
    assert run("check", str(files.path), "--as", "orders", *rights)[0] == status


def test_an_unknown_principal_is_a_usage_error(tmp_path: Path) -> None:
    """Without it, "no" would look like the answer of a rule."""
    files = AccessFolder(tmp_path)
    files.principal("orders")
    status, _, reported = run("check", str(files.path), "--as", "nobody", "--may", "Pub Topic:t")
    assert (status, "the file has no principal 'nobody'; it has orders" in reported) == (ExitStatus.USAGE, True)


def test_a_role_is_checked_as_if_a_token_granted_it(tmp_path: Path) -> None:
    """The rule's network applies."""
    files = AccessFolder(tmp_path)
    files.principal("p", roles=["readers"])
    files._rules.append(
        '[[rule]]\nroles = ["readers"]\nresources = ["*"]\nactions = ["All"]\nsources = ["10.0.0.0/8"]\n'
    )
    files.write()
    ask = ("check", str(files.path), "--as", "stranger", "--may", "Get Cluster:s", "--role", "readers")
    assert run(*ask, "--from", "10.1.1.1")[0] == ExitStatus.OK
    assert run(*ask, "--from", "11.1.1.1")[0] == ExitStatus.FAILED
