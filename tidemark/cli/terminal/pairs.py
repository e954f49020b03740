"""Values of options of the form NAME=VALUE."""

from __future__ import annotations

from collections.abc import Iterable

import typer


def pair_of(text: str, *, option: str) -> tuple[str, str]:
    """Return name and value of *text*. Raises a usage error for another form."""
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint=option)
    return name, value


def pairs_of(texts: Iterable[str], *, option: str) -> dict[str, str]:
    """Return the values by name. Raises a usage error for another form, and for a name that is given twice."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, value = pair_of(text, option=option)
        if name in pairs:
            raise typer.BadParameter(f"{name} is given twice", param_hint=option)
        pairs[name] = value
    return pairs
