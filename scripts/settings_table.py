"""Writes docs/settings.md from the settings classes: `make docs`; a test compares both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import annotated_types
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from tidemark.settings.registry import SERVICES, settings_class, variable

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"
BASIC = (  # the fields that a user changes first; all others are listed under "Expert"
    "store_root",
    "log_level",
    "writer_listen",
    "query_listen",
    "writer_remoting_listen",
    "query_remoting_listen",
    "writer_metrics_listen",
    "pipeline_metrics_listen",
    "writer_address",
    "advertised_address",
    "allow_plaintext",
    "tls_cert",
    "tls_key",
    "tls_client_ca",
    "tls_ca",
    "access_file",
    "token_file",
    "flush_mode",
    "pipeline",
    "retention_hours",
    "retention_disk_percent",
    "max_message_size_bytes",
    "auto_create_topics",
    "default_queues",
)
_ABOUT = """# Settings

Which settings do the services have?

<!-- `make docs` writes this page from the settings classes. -->

Settings come from the environment, or from options of a service (`python -m services.writer --help`).
`tidemark config show` prints each with its value and origin; `--env-file` reads a file as systemd does.
A service ends with status 2 if a variable `TIDEMARK_…` is unknown, unless Kubernetes made it for a Service.
Each entry is `setting=default`, its meaning, and in parentheses the allowed values.
A heading names the services that read the settings below it.

[Basic](#basic) has the settings that most installations change, [Expert](#expert) all others.
"""


def page() -> str:
    """Return the text of docs/settings.md."""
    return f"{_ABOUT}\n## Basic\n\n{lists(is_basic=True)}\n## Expert\n\n{lists(is_basic=False)}"


def lists(*, is_basic: bool) -> str:
    """Return a Markdown list for each set of services that read the same settings: setting with default, meaning."""
    readers: dict[tuple[str, str], list[str]] = {}
    for service in SERVICES:
        for name, field in settings_class(service).model_fields.items():
            if (name in BASIC) is is_basic:
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


if __name__ == "__main__":
    PAGE.write_text(page())
