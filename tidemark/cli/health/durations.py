"""Durations as text."""

from __future__ import annotations

_UNITS = (("year", 365 * 86_400), ("day", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def duration_text(seconds: float) -> str:
    """Return the duration in the largest unit that fits twice: `90 s`, `3 h`, `12 days`; below two seconds, `1.5 s`."""
    for name, size in _UNITS:
        if seconds >= 2 * size:
            return f"{int(seconds // size):,} {name}{'s' if name in ('year', 'day') else ''}"
    return f"{max(0.0, seconds):.1f} s"
