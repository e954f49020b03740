"""Tags and keys that a reader can ask for: a filter names a tag, a lookup names a key, each by its own text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidemark.errors import PropertiesIllegalError
from tidemark.format.properties import KEY_SEPARATOR, KEYS, TAGS
from tidemark.format.tags import ALL_TAGS, TAG_SEPARATOR

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def require_tag(tag: str, *, at: int | None = None) -> str:
    """Return *tag*, where a filter can name it.

    Raises TypeError for another type; PropertiesIllegalError for ``*``, ``||``, surrounding blanks and control
    characters. at: the number of the message in its batch.
    """
    if not isinstance(tag, str):
        raise TypeError(f"a tag is a text (str), not {tag!r} of type {type(tag).__name__}")
    if tag == ALL_TAGS:
        raise PropertiesIllegalError(f"the tag is {tag!r}, which a filter takes for all tags", name=TAGS, at=at)
    if TAG_SEPARATOR in tag:
        raise PropertiesIllegalError(
            f"the tag {tag!r} holds {TAG_SEPARATOR!r}, which separates the tags of a filter", name=TAGS, at=at
        )
    if tag != tag.strip():
        raise PropertiesIllegalError(
            f"the tag {tag!r} begins or ends with a blank, which a filter leaves out: strip it", name=TAGS, at=at
        )
    _require_no_control(tag, "tag", TAGS, at)
    return tag


def require_key(key: str, *, at: int | None = None) -> str:
    """Return *key*, where a lookup can name it.

    Raises TypeError for another type; PropertiesIllegalError for an empty key, spaces and control characters.
    at: the number of the message in its batch.
    """
    if not isinstance(key, str):
        raise TypeError(f"a key is a text (str), not {key!r} of type {type(key).__name__}")
    if not key:
        raise PropertiesIllegalError("a key is empty", name=KEYS, key=key, at=at)
    if KEY_SEPARATOR in key:
        raise PropertiesIllegalError(
            f"the key {key[:64]!r} holds a space, which separates keys: give several keys as a list", key=key, at=at
        )
    _require_no_control(key, "key", KEYS, at)
    return key


def require_findable(properties: Mapping[str, str], *, at: int | None = None) -> None:
    """Apply `require_tag` and `require_key` to the entries TAGS and KEYS of *properties*."""
    tag, keys = properties.get(TAGS), properties.get(KEYS)
    if tag:
        require_tag(tag, at=at)
    for key in (keys or "").split(KEY_SEPARATOR):
        if key:
            require_key(key, at=at)


def _require_no_control(text: str, what: str, name: str, at: int | None) -> None:
    found = _CONTROL.search(text)
    if found:
        raise PropertiesIllegalError(
            f"the {what} {text[:64]!r} holds the control character {found.group()!r}, which no request can carry",
            name=name,
            at=at,
        )
