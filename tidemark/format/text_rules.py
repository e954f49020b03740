"""Rules for tags and keys, so that every tag can be used in a filter and every key in a lookup."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidemark.errors import PropertiesIllegalError
from tidemark.format.properties import KEY_SEPARATOR, KEYS, TAGS
from tidemark.format.tags import ALL_TAGS, TAG_SEPARATOR

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def require_tag(tag: str, *, at: int | None = None) -> str:
    """Return *tag* if a filter can name it.

    Raises TypeError for another type; PropertiesIllegalError for ``*``, ``||``, surrounding blanks and control
    characters. at: index of the message in its batch.
    """
    if not isinstance(tag, str):
        raise TypeError(f"a tag must be a str, not {tag!r} of type {type(tag).__name__}")
    if tag == ALL_TAGS:
        raise PropertiesIllegalError(f"the tag is {tag!r}, which means all tags in a filter", name=TAGS, at=at)
    if TAG_SEPARATOR in tag:
        raise PropertiesIllegalError(
            f"the tag {tag!r} contains {TAG_SEPARATOR!r}, which separates tags in a filter", name=TAGS, at=at
        )
    if tag != tag.strip():
        raise PropertiesIllegalError(
            f"the tag {tag!r} begins or ends with a blank, which a filter ignores: strip it", name=TAGS, at=at
        )
    _require_no_control(tag, "tag", TAGS, at)
    return tag


def require_key(key: str, *, at: int | None = None) -> str:
    """Return *key* if a lookup can name it.

    Raises TypeError for another type; PropertiesIllegalError for an empty key, spaces and control characters.
    at: index of the message in its batch.
    """
    if not isinstance(key, str):
        raise TypeError(f"a key must be a str, not {key!r} of type {type(key).__name__}")
    if not key:
        raise PropertiesIllegalError("a key must not be empty", name=KEYS, key=key, at=at)
    if KEY_SEPARATOR in key:
        raise PropertiesIllegalError(
            f"the key {key[:64]!r} contains a space, which separates keys: pass several keys as a list", key=key, at=at
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
            f"the {what} {text[:64]!r} contains the control character {found.group()!r}, which requests cannot carry",
            name=name,
            at=at,
        )
