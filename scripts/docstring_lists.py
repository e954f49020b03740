"""Converts docstrings to Markdown (`make site`): paragraphs that are tables of names and meanings become lists.

A line of a table begins with a name, and all meanings begin at the same column. A line without a name continues the
meaning above.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_FIRST = re.compile(r"(\S(?:.*?\S)?) {2,}(?=\S)")  # a name, and the gap after it


def with_lists(text: str) -> str:
    """Return *text* with each table converted to a list."""
    return "\n\n".join(_list_of(paragraph) or paragraph for paragraph in text.split("\n\n"))


def _list_of(paragraph: str) -> str | None:
    """Return *paragraph* as a list; None if it is not a table."""
    lines = paragraph.splitlines()
    first = next((found for line in lines if (found := _FIRST.match(line))), None)
    if first is None:
        return None
    column = first.end()
    items: list[list[str]] = []
    for line in lines:
        name, meaning = line[:column], line[column:].strip()
        if name.strip() and (len(name) < column or not name.endswith(" ")):
            return None
        if name.strip():
            items.append([f"- **{name.strip()}**: {meaning}"])
        elif not items:
            return None
        else:
            items[-1].append(meaning)
    return "\n".join(" ".join(item) for item in items)


class DocstringLists(griffe.Extension):
    """The extension that mkdocstrings calls for each object."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Convert the docstring of *obj*."""
        if obj.docstring is not None:
            obj.docstring.value = with_lists(obj.docstring.value)
