"""A short explanation of an assertion that compares contents of files: pytest would print all of their bytes."""

from __future__ import annotations

_SHORT = 1000  # pytest's own explanation of fewer bytes can be read
_SHOWN = 16


def explain(left: object, right: object) -> list[str] | None:
    """Return what differs, by file, with the first byte that does; None unless both are contents of files.

    They are one file's bytes, a list of such, or bytes by name.
    """
    ours, theirs = _by_name(left), _by_name(right)
    if type(left) is not type(right) or ours is None or theirs is None:
        return None
    if max(map(len, [*ours.values(), *theirs.values(), b""])) < _SHORT:
        return None
    names = [name for name in sorted(ours.keys() | theirs.keys()) if ours.get(name) != theirs.get(name)]
    differences = [f"{name}: {_difference(ours.get(name), theirs.get(name))}" for name in names]
    return [f"{len(ours)} files and {len(theirs)} files differ", *differences]


def _by_name(value: object) -> dict[str, bytes] | None:
    if isinstance(value, bytes):
        value = [value]
    if isinstance(value, list):
        value = {f"file {number}": content for number, content in enumerate(value)}
    if not isinstance(value, dict) or not all(isinstance(content, bytes) for content in value.values()):
        return None
    return {str(name): content for name, content in value.items()}


def _difference(one: bytes | None, other: bytes | None) -> str:
    if one is None or other is None:
        return f"only {'right' if one is None else 'left'}"
    pairs = zip(one, other, strict=False)
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
    return f"{len(one)} and {len(other)} bytes, from byte {at}: {one[at : at + _SHOWN]!r}, {other[at : at + _SHOWN]!r}"
