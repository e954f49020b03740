"""Writes the lists of settings into docs/operations.md from the settings classes: `make docs`; a test compares them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import annotated_types
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from tidemark.settings.registry import SERVICES, settings_class, variable

PAGE = Path(__file__).resolve().parents[1] / "docs" / "operations.md"
HEADING = "## Settings\n"
_ABOUT = """Settings come from the environment; all services but the writer also take them as options (`--help`).
`tidemark config show` prints each with its value and origin; `--env-file` reads a file as systemd does.
A service ends with status 2 if a variable `TIDEMARK_…` is unknown, unless Kubernetes made it for a Service.
Each entry is `setting=default`, its meaning, and in parentheses the allowed values.
"""


def lists() -> str:
    """Return a Markdown list for each set of services that read the same settings: setting with default, meaning."""
    readers: dict[tuple[str, str], list[str]] = {}
    for service in SERVICES:
        for name, field in settings_class(service).model_fields.items():
            row = (variable(name) + _default(field.default), str(field.description) + _bounds(field))
            readers.setdefault(row, []).append(service)
    groups: dict[tuple[str, ...], list[str]] = {}
    for (setting, meaning), services in sorted(readers.items()):
        groups.setdefault(tuple(services), []).append(f"- `{setting}`: {meaning}\n")
    ordered = sorted(groups, key=lambda group: (-len(group), SERVICES.index(group[0])))
    return "\n".join(f"### {', '.join(group).capitalize()}\n\n{''.join(groups[group])}" for group in ordered)


def _default(value: Any) -> str:
    return "" if value in (None, "", PydanticUndefined) else f"={getattr(value, 'value', value)}"


def _bounds(field: FieldInfo) -> str:
    """Return the allowed range; nothing if only negative numbers or zero are refused."""
    least = next((rule.ge for rule in field.metadata if isinstance(rule, annotated_types.Ge)), None)
    greatest = next((rule.le for rule in field.metadata if isinstance(rule, annotated_types.Le)), None)
    if greatest is not None:
        return f" ({least:,.0f}–{greatest:,.0f})"
    return "" if least in (None, 0, 1) else f" (≥{least:,})"


def with_lists(page: str) -> str:
    """Return *page* with new lists after its last heading."""
    head, heading, _ = page.partition(HEADING)
    return f"{head}{heading}\n{_ABOUT}\n{lists()}"


if __name__ == "__main__":
    sys.exit(0 if PAGE.write_text(with_lists(PAGE.read_text())) else 1)
