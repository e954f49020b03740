"""`tidemark context …`, and the precedence of a context's values."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.fixed_ports import fixed_port
from tidemark.cli.main import app
from tidemark.cli.terminal.exit_status import ExitStatus

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the path of the file of contexts, which does not exist yet."""
    for name in list(os.environ):
        if name.startswith("TIDEMARK_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "tidemark" / "contexts.toml"


def _run(*arguments: str, status: int = ExitStatus.OK) -> Any:
    """Run the command to its end with *status*; return what it prints as JSON, or its error."""
    done = CliRunner().invoke(app, [*arguments, "--output", "json"])
    assert done.exit_code == status, done.output
    return json.loads(done.stdout) if status == ExitStatus.OK else done.stderr


def test_contexts_are_added_listed_shown_and_removed(file: Path) -> None:
    """Only the user can read the file."""
    assert _run("context", "list") == {"file": str(file), "current": None, "contexts": {}}
    _run("context", "add", "dev", "--writer", "127.0.0.1:1,127.0.0.1:2", "--query", "http://127.0.0.1:3")
    _run("context", "add", "a.b-c", "--tls-cert", "/c.pem", "--tls-key", '/"k\\ü".pem', "--tls-ca", "/ca.pem", "--use")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    certificate = {"tls_ca": "/ca.pem", "tls_cert": "/c.pem", "tls_key": '/"k\\ü".pem'}
    assert _run("context", "show") == {"context": "a.b-c", "current": True, **certificate}
    assert _run("context", "list")["contexts"] == {
        "dev": {"writer": "127.0.0.1:1,127.0.0.1:2", "query": "http://127.0.0.1:3"},
        "a.b-c": certificate,
    }
    _run("context", "remove", "a.b-c")
    assert _run("context", "list")["current"] is None
    assert "there is no current context" in _run("context", "show", status=ExitStatus.USAGE)


def test_a_context_is_replaced_only_if_asked() -> None:
    _run("context", "add", "dev", "--query", "http://127.0.0.1:3")
    assert "give --replace" in _run("context", "add", "dev", "--writer", "a:1", status=ExitStatus.USAGE)
    _run("context", "add", "dev", "--writer", "a:1", "--replace")
    assert _run("context", "show", "dev") == {"context": "dev", "current": False, "writer": "a:1"}


def test_paths_become_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command may be used in another folder later."""
    monkeypatch.chdir(tmp_path)
    assert _run("context", "add", "dev", "--token-file", "my.token")["token_file"] == str(tmp_path / "my.token")


@pytest.mark.parametrize(
    ("arguments", "status", "reported"),
    [
        (["add", "dev"], ExitStatus.USAGE, "give at least one"),
        (["add", "../dev", "--writer", "a:1"], ExitStatus.USAGE, "no name for a context"),
        (["add", "dev", "--writer", "http://a:1"], ExitStatus.REJECTED, "has the scheme http://"),
        (["add", "dev", "--writer", "a:1,b"], ExitStatus.REJECTED, "is not host:port"),
        (["add", "dev", "--query", "a:1"], ExitStatus.USAGE, "no http or https address"),
        (["add", "dev", "--tls-cert", "c.pem"], ExitStatus.USAGE, "must be given together"),
        (["add", "dev", "--token-file", "a\nb"], ExitStatus.USAGE, "control characters"),
        (["use", "dev"], ExitStatus.USAGE, "there is no context 'dev'"),
        (["use"], ExitStatus.USAGE, "give either a name or --none"),
        (["remove", "dev"], ExitStatus.USAGE, "there are none"),
    ],
)
def test_invalid_contexts_are_refused(file: Path, arguments: list[str], status: ExitStatus, reported: str) -> None:
    """Nothing is written."""
    assert reported in _run("context", *arguments, status=status)
    assert not file.exists()


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        ('[contexts.dev]\nwritter = "a:1"\n', "the key contexts.dev.writter is unknown; known are writer, query"),
        ('curent = "dev"\n', "the key curent is unknown"),
        ('current = "dev"\n', "the current context 'dev' does not exist"),
        ("[contexts.dev]\nwriter = 1\n", "contexts.dev must be a table of texts"),
        ("not toml", "is not TOML"),
    ],
)
def test_an_invalid_file_is_refused(file: Path, content: str, reported: str) -> None:
    """Verbs that connect refuse it, too."""
    file.parent.mkdir()
    file.write_text(content)
    for arguments in (["context", "list"], ["topic", "list"]):
        assert reported in json.loads(_run(*arguments, status=ExitStatus.REJECTED))["error"]


def test_option_variable_and_context_take_precedence_in_this_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verb's own --context precedes that of the root, the variable, and the current context."""
    ports = {name: fixed_port() for name in ("current", "variable", "root", "verb", "url", "option")}
    urls = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
    for name in ("current", "variable", "root", "verb"):
        _run("context", "add", name, "--query", urls[name], "--writer", f"127.0.0.1:{ports[name]}")

    def asked(*arguments: str) -> str:
        return str(json.loads(CliRunner().invoke(app, [*arguments, "-o", "json"]).stdout)["query"]["url"])

    assert asked("status") == "http://127.0.0.1:8080"
    _run("context", "use", "current")
    assert asked("status") == urls["current"]
    monkeypatch.setenv("TIDEMARK_CONTEXT", "variable")
    assert asked("status") == urls["variable"]
    assert asked("--context", "root", "status") == urls["root"]
    assert asked("--context", "root", "status", "--context", "verb") == urls["verb"]
    monkeypatch.setenv("TIDEMARK_QUERY_URL", urls["url"])
    assert asked("status", "--context", "verb") == urls["url"]
    assert asked("status", "--context", "verb", "--query", urls["option"]) == urls["option"]
    assert "TIDEMARK_WRITER_ADDRESS" not in os.environ


def test_sources_of_values_are_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Services do not read a context, because its certificate is that of a client."""
    writer = f"127.0.0.1:{fixed_port()}"
    _run("context", "add", "dev", "--writer", writer, "--tls-cert", "/c.pem", "--tls-key", "/k.pem", "--use")
    monkeypatch.setenv("TIDEMARK_TOKEN_FILE", "/t")
    monkeypatch.setenv("TIDEMARK_CONTEXT", "dev")  # a known variable
    settings = _run("config", "show")
    assert settings["client"]["TIDEMARK_WRITER_ADDRESS"] == {"value": writer, "source": "context"}
    assert settings["client"]["TIDEMARK_TLS_CERT"] == {"value": "/c.pem", "source": "context"}
    assert settings["client"]["TIDEMARK_TOKEN_FILE"] == {"value": "/t", "source": "environment"}
    assert settings["client"]["TIDEMARK_QUERY_URL"]["source"] == "default"
    assert settings["writer"]["TIDEMARK_TLS_CERT"] == {"value": None, "source": "default"}
    url = f"http://127.0.0.1:{fixed_port()}"
    checks = CliRunner().invoke(app, ["doctor", "--query", url, "--data", str(tmp_path), "-o", "json"])
    (line,) = [check for check in json.loads(checks.stdout)["checks"] if check["name"] == "connection"]
    assert line["text"] == (
        f"writer {writer} (context dev), query {url} (option), tls_cert /c.pem (context dev), "
        "tls_key /k.pem (context dev), token_file /t (environment)"
    )


def test_a_certificate_and_its_key_come_from_one_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable names a certificate for which the context has no key."""
    _run("context", "add", "dev", "--tls-cert", "/c.pem", "--tls-key", "/k.pem", "--use")
    monkeypatch.setenv("TIDEMARK_TLS_CERT", "/other.pem")
    client = _run("config", "show", "client")["client"]
    assert client["TIDEMARK_TLS_CERT"] == {"value": "/other.pem", "source": "environment"}
    assert client["TIDEMARK_TLS_KEY"] == {"value": None, "source": "default"}
