"""Contexts: named addresses and credentials of services, in a file of the user.

A context is chosen by --context, by TIDEMARK_CONTEXT, or as the file's current one. Its values are defaults of the
environment variables, so an option and a variable that is set take precedence.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import typer

from tidemark.errors import ArgumentIllegalError

CONTEXT_VARIABLE = "TIDEMARK_CONTEXT"
VARIABLES = {  # key of a context → environment variable
    "writer": "TIDEMARK_WRITER_ADDRESS",
    "query": "TIDEMARK_QUERY_URL",
    "tls_ca": "TIDEMARK_TLS_CA",
    "tls_cert": "TIDEMARK_TLS_CERT",
    "tls_key": "TIDEMARK_TLS_KEY",
    "token_file": "TIDEMARK_TOKEN_FILE",
}
PATHS = frozenset({"tls_ca", "tls_cert", "tls_key", "token_file"})
_PAIR = ("tls_cert", "tls_key")  # from one source: a certificate fits only its own key
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
Context = dict[str, str]


@dataclass
class Contexts:
    """The contexts by name. current: the default; None: none."""

    current: str | None = None
    by_name: dict[str, Context] = field(default_factory=dict)

    def get(self, name: str, *, option: str) -> Context:
        """Return a context. Raises a usage error, of *option*, for an unknown name."""
        if name not in self.by_name:
            known = f"there are {', '.join(sorted(self.by_name))}" if self.by_name else "there are none"
            raise typer.BadParameter(f"there is no context {name!r} in {contexts_path()}; {known}", param_hint=option)
        return self.by_name[name]


def contexts_path() -> Path:
    """Return the file of contexts: $XDG_CONFIG_HOME/tidemark/contexts.toml, by default in ~/.config."""
    configured = os.environ.get("XDG_CONFIG_HOME")
    folder = Path(configured) if configured else Path.home() / ".config"
    return folder / "tidemark" / "contexts.toml"


def read_contexts() -> Contexts:
    """Return the contexts of the file; none without a file.

    Raises ArgumentIllegalError if the file is not TOML, or has an unknown key.
    """
    import tomllib

    path = contexts_path()
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Contexts()
    except ValueError as error:
        raise ArgumentIllegalError(f"{path} is not TOML: {error}", path=str(path)) from None
    _require_known(table, ("current", "contexts"), "")
    current, by_name = table.get("current"), table.get("contexts", {})
    if not isinstance(current, str | None) or not isinstance(by_name, dict):
        raise ArgumentIllegalError(f"{path}: current must be text, and contexts a table", path=str(path))
    for name, values in by_name.items():
        if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
            raise ArgumentIllegalError(f"{path}: contexts.{name} must be a table of texts", path=str(path))
        _require_known(values, tuple(VARIABLES), f"contexts.{name}.")
    contexts = Contexts(current, by_name)
    if current is not None and current not in by_name:
        raise ArgumentIllegalError(f"{path}: the current context {current!r} does not exist", path=str(path))
    return contexts


def _require_known(table: dict[str, object], known: tuple[str, ...], prefix: str) -> None:
    for key in table:
        if key not in known:
            path = contexts_path()
            what = f"{path}: the key {prefix}{key} is unknown; known are {', '.join(known)}"
            raise ArgumentIllegalError(what, path=str(path), key=f"{prefix}{key}")


def write_contexts(contexts: Contexts) -> None:
    """Replace the file, which only the user can read. Raises OSError."""
    lines = ["# Written by `tidemark context`."]
    lines += [f"current = {_quoted(contexts.current)}"] * (contexts.current is not None)
    for name, values in contexts.by_name.items():
        lines += ["", f"[contexts.{_quoted(name)}]", *(f"{key} = {_quoted(value)}" for key, value in values.items())]
    path = contexts_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # its mode is 600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _quoted(text: str | None) -> str:
    """Return a TOML string. The text has no control characters: see `require_name` and `require_value`."""
    return '"' + (text or "").replace("\\", "\\\\").replace('"', '\\"') + '"'


def require_name(name: str, *, option: str) -> None:
    """Raise a usage error for a name that no context can have."""
    if not _NAME.fullmatch(name):
        raise typer.BadParameter(
            f"{name!r} is no name for a context: use 1 to 64 letters, digits, dots, dashes and underscores",
            param_hint=option,
        )


def require_value(value: str, *, option: str) -> None:
    """Raise a usage error for an empty value, or one with control characters."""
    if not value or _CONTROL.search(value):
        raise typer.BadParameter(f"{value!r} is empty or has control characters", param_hint=option)


@contextlib.contextmanager
def applied_context(name: str | None) -> Iterator[dict[str, str]]:
    """Set the environment variables of a context that are not set, for a `with` block.

    name: None for TIDEMARK_CONTEXT, or else the current context

    Yields the name of the context by variable, for the variables that it sets. Raises a usage error for an unknown
    context, and ArgumentIllegalError for an invalid file.
    """
    chosen = _chosen(name)
    values = {} if chosen is None else chosen[1]
    if any(os.environ.get(VARIABLES[key]) for key in _PAIR):
        values = {key: value for key, value in values.items() if key not in _PAIR}
    missing = {variable: values[key] for key, variable in VARIABLES.items() if key in values}
    missing = {variable: value for variable, value in missing.items() if not os.environ.get(variable)}
    os.environ.update(missing)
    try:
        yield dict.fromkeys(missing, "" if chosen is None else chosen[0])
    finally:
        for variable in missing:
            os.environ.pop(variable, None)


def _chosen(name: str | None) -> tuple[str, Context] | None:
    asked = name or os.environ.get(CONTEXT_VARIABLE)
    if not asked and not contexts_path().exists():
        return None
    contexts = read_contexts()
    if asked:
        return asked, contexts.get(asked, option="--context" if name else CONTEXT_VARIABLE)
    return None if contexts.current is None else (contexts.current, contexts.by_name[contexts.current])


def complete_context(incomplete: str) -> list[str]:
    """Return the contexts that begin with *incomplete*, for the shell's completion."""
    try:
        return [name for name in read_contexts().by_name if name.startswith(incomplete)]
    except Exception:  # an error would be printed into the line that is typed
        return []
