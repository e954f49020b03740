"""Store times as the command line names them: relative to now, a day, RFC 3339 or epoch milliseconds."""

from __future__ import annotations

import datetime
import re
import time

import typer

TIME_HELP = (
    "TIME is relative to this machine's clock (-90s, -30m, -1h30m, -2d), now, today, yesterday, a day "
    "(2026-01-31, from 00:00 UTC), RFC 3339 (2026-01-31T12:00:00Z), or epoch milliseconds (1795240089391ms)"
)
_UNIT_MS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
_RELATIVE = re.compile(r"@?-((?:[0-9]{1,9}[wdhms])+)")
_WITHOUT_SIGN = re.compile(r"(?:[0-9]{1,9}[wdhms])+")
_EPOCH_MS = re.compile(r"([0-9]{1,18})ms")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DAYS_AGO = {"today": 0, "yesterday": 1}  # a day begins at 00:00 UTC, as all output is in UTC


def parse_time(text: str, *, option: str, others: str = "") -> int:
    """Parse the value of *option* into epoch milliseconds. Raises a usage error for anything else.

    others: names of the other values that the option takes, for the error
    """
    now_ms = time.time_ns() // 1_000_000
    if text == "now":
        return now_ms
    if text in _DAYS_AGO:
        return (now_ms // _UNIT_MS["d"] - _DAYS_AGO[text]) * _UNIT_MS["d"]
    if relative := _RELATIVE.fullmatch(text):
        return max(0, now_ms - _milliseconds(relative[1]))
    if epoch_ms := _EPOCH_MS.fullmatch(text):
        return int(epoch_ms[1])
    return _calendar_ms(text, option=option, others=others)


def _milliseconds(duration: str) -> int:
    """Return the sum of a duration's parts, such as `1h30m`."""
    return sum(int(number) * _UNIT_MS[unit] for number, unit in re.findall(r"([0-9]+)([wdhms])", duration))


def _calendar_ms(text: str, *, option: str, others: str) -> int:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        hint = f"; write -{text} for {text} ago" if _WITHOUT_SIGN.fullmatch(text) else ""
        raise typer.BadParameter(
            f"{text!r} is not {others}a TIME{hint}. {TIME_HELP}. For example: {option} -1h", param_hint=option
        ) from None
    if moment.tzinfo is None and not _DAY.fullmatch(text):
        raise typer.BadParameter(f"{text!r} has no time zone: add Z or +hh:mm", param_hint=option)
    return max(0, round(moment.replace(tzinfo=moment.tzinfo or datetime.UTC).timestamp() * 1000))
