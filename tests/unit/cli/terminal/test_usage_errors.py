"""Messages of usage errors: they name the value and the limit, not the library that found the error."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from tidemark.cli.main import app
from tidemark.cli.terminal.exit_status import ExitStatus


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["topic", "list", "--output", "yaml"], "'--output' / '-o': 'yaml' is not one of 'table', 'json'."),
        (["completion", "tcsh"], "'tcsh' is not one of 'bash', 'zsh', 'fish'."),
        (["consume", "orders", "--queue", "x"], "'--queue': 'x' is not a whole number."),
        (["consume", "orders", "--max", "0"], "'--max': 0 is too small: at least 1."),
        (["serve", "--writer-port", "99999"], "'--writer-port': 99999 is too great: at most 65535."),
        (["status", "--max-behind-s", "soon"], "'--max-behind-s': 'soon' is not a number."),
        (["log", "cat", "/no/such/folder"], "dir '/no/such/folder' does not exist."),
    ],
)
def test_an_invalid_value_is_reported_with_its_limit(arguments: list[str], reported: str) -> None:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == ExitStatus.USAGE
    assert reported in done.stderr
