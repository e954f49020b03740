"""Writes docs/cli.md from the command's own help: `make docs`; a test compares them."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer.main import get_command

from tidemark.cli.main import HELP, app
from tidemark.cli.terminal.exit_status import MEANINGS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cli.md"
_COMMON_FROM = 2  # a parameter of this many verbs is described once
_USUAL = "--output"  # an option of nearly all verbs, which their sections do not name
_TYPE = re.compile(r" <(?:list\[)?(\w+)(?: range)?\]?>$")
_LEAST = re.compile(r"  \[x>=[01]\]|; x>=[01](?=\])")
_HEAD = """# The `tidemark` command

`make docs` writes this page from the command's own help.

{help}

The text output of a verb may change between versions; programs should use `--output json`.
It prints one document, or one line per item of a stream, and nothing else to standard output.
Messages go to standard error; with `--output json` each one is a line of JSON with the stable `reason`.
If the reader closes the pipe, as in `consume … | head`, the command ends without an error.
`tidemark help VERB` and `tidemark VERB -h` print the help of a verb.

## Exit statuses

| status | name | meaning |
|--:|---|---|
{statuses}

## Common arguments and options

Every verb takes `{usual}`, except {without}.

{common}
"""


class _Parameter(NamedTuple):
    """An argument or option of a verb, as the page shows it."""

    name: str
    text: str

    @property
    def line(self) -> str:
        """The line of the page that describes it."""
        return f"- `{self.name}`: {self.text}"

    @property
    def short(self) -> str:
        """The long name, which a verb's section has for a common option."""
        return next(word for word in re.split(r"[ ,]+", self.name) if word.startswith("--"))


class _Verb(NamedTuple):
    """A verb with its parameters, in the order of its help."""

    title: str
    help: str
    example: str
    arguments: tuple[_Parameter, ...]
    options: tuple[_Parameter, ...]


def page() -> str:
    """Return the content of docs/cli.md."""
    command = get_command(app)
    verbs = list(_verbs(command, typer.Context(command), "tidemark"))
    used = Counter(parameter for verb in verbs for parameter in (*verb.arguments, *verb.options))
    by_name = {parameter.name: parameter for parameter, _ in reversed(used.most_common())}  # the most used text
    common = [parameter for parameter in by_name.values() if used[parameter] >= _COMMON_FROM]
    head = _HEAD.format(
        help=HELP.partition("\n\n")[2].rpartition("\n")[0],  # without the title, and the note on examples
        statuses="\n".join(f"| {status.value} | `{status.name}` | {meaning} |" for status, meaning in MEANINGS.items()),
        usual=_USUAL,
        without=_listed(f"`{verb.title}`" for verb in verbs if _USUAL not in [one.short for one in verb.options]),
        common="\n".join(parameter.line for parameter in sorted(common)),
    )
    return head + "".join(_section(verb, frozenset(common)) for verb in verbs)


def _listed(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}"


def _verbs(command: Any, context: typer.Context, *words: str) -> Iterator[_Verb]:
    """Yield the verbs at and below *command*."""
    if hasattr(command, "commands"):
        for name, child in command.commands.items():
            yield from _verbs(child, context, *words, name)
        return
    usage = [piece.strip("{}") for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    yield _Verb(
        " ".join((*words, *usage)),
        command.help,
        command.epilog.removeprefix("Example: "),
        tuple(_argument(*one.get_help_record(context)) for one in _of_kind(command, "argument")),
        tuple(_option(*one.get_help_record(context)) for one in _of_kind(command, "option")),
    )


def _of_kind(command: Any, kind: str) -> list[Any]:
    return [parameter for parameter in command.params if parameter.param_type_name == kind]


def _argument(name: str, text: str) -> _Parameter:
    """Return an argument without its type, unless it is a choice that is not the name itself.

    The usage in the title shows whether it is required.
    """
    name, _, kind = name.partition(" ")
    text = text.replace("  [required]", "").replace("; required]", "]").replace("  [", " [")
    return _Parameter(f"{name} {kind}" if "|" in kind and kind != f"<{name}>" else name, text)


def _option(name: str, text: str) -> _Parameter:
    """Return an option with its type in capitals: `--queue INT` for `--queue <list[int]>`.

    A bound is left out if it refuses only negative numbers or zero.
    """
    text = _LEAST.sub("", text).replace("  [", " [")
    return _Parameter(_TYPE.sub(lambda found: f" {found[1].upper()}", name), text)


def _section(verb: _Verb, common: frozenset[_Parameter]) -> str:
    """Return the help of *verb*, its example, its own parameters, and the names of its common ones but `_USUAL`."""
    own = [parameter.line for parameter in (*verb.arguments, *verb.options) if parameter not in common]
    shared = [f"`{option.short}`" for option in verb.options if option in common and option.short != _USUAL]
    if shared:
        own.append(f"- Common: {', '.join(shared)}.")
    parameters = [*own, ""] if own else []
    return "\n".join([f"\n## `{verb.title}`", "", verb.help, "", f"    {verb.example}", "", *parameters])


if __name__ == "__main__":
    sys.exit(0 if PAGE.write_text(page()) else 1)
