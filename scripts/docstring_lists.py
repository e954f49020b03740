"""The house's docstrings for Markdown (`make site`): paragraphs that are tables of names and meanings become lists.

A table's lines begin with a name and have its meaning at one column; lines that begin further right go on.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_FIRST = re.compile(r"(\S(?:.*?\S)?) {2,}(?=\S)")  # a name, and the gap behind it


def with_lists(text: str) -> str:
    """*text* with each such paragraph as a list."""
    return "\n\n".join(_list_of(paragraph) or paragraph for paragraph in text.split("\n\n"))


def _list_of(paragraph: str) -> str | None:
    """None where *paragraph* is no table."""
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
    """What mkdocstrings calls for each object it has read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change its docstring."""
        if obj.docstring is not None:
            obj.docstring.value = with_lists(obj.docstring.value)
