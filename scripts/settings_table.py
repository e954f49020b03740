"""Writes the table of settings into docs/operations.md from the settings classes: `make docs`; a test compares them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pydantic_core import PydanticUndefined

from tidemark.settings.registry import SERVICES, settings_class, variable

PAGE = Path(__file__).resolve().parents[1] / "docs" / "operations.md"
HEADING = "## Settings\n"
_ABOUT = """Settings come from the environment; all services but the writer also take them as options (`--help`).
`tidemark config show` prints every setting with its value and origin: environment, file, command line or default.
With `--env-file` it reads a file as systemd does.

A service refuses to start (exit status 2) if it finds an unknown variable `TIDEMARK_…`, and names the nearest one.
Variables that Kubernetes sets for Services named `tidemark-…` are ignored.
"""


def table() -> str:
    """Return the table of all settings as Markdown: name, services that read it, default, meaning."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for service in SERVICES:
        for name, field in settings_class(service).model_fields.items():
            key = (variable(name), _default(field.default), str(field.description))
            rows.setdefault(key, []).append(service)
    lines = ["| setting | read by | default | |", "|---|---|---|---|"]
    for (name, default, meaning), services in sorted(rows.items()):
        lines.append(f"| `{name}` | {', '.join(services)} | {default} | {meaning} |")
    return "\n".join(lines) + "\n"


def _default(value: Any) -> str:
    return "–" if value in (None, "", PydanticUndefined) else f"`{getattr(value, 'value', value)}`"


def with_table(page: str) -> str:
    """Return *page* with a new table after its last heading."""
    head, heading, _ = page.partition(HEADING)
    return f"{head}{heading}\n{_ABOUT}\n{table()}"


if __name__ == "__main__":
    sys.exit(0 if PAGE.write_text(with_table(PAGE.read_text())) else 1)
