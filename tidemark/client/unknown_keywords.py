"""Unknown keywords: a TypeError that names the keyword and the nearest accepted one, instead of a dropped argument."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
_SYNONYMS = {  # keywords of other clients whose spelling is too different for get_close_matches
    "headers": "properties",
    "header": "properties",
    "attributes": "properties",
    "partition": "queue_id",
    "queue": "queue_id",
    "payload": "body",
    "data": "body",
    "partition_key": "key",
    "delay": "delay_level",
    "num_partitions": "queues",
    "partitions": "queues",
    "bootstrap_servers": "writers",
    "address": "writers",
    "group_id": "group",
    "auto_offset_reset": "start",
    "enable_auto_commit": "auto_commit",
}


def require_keywords(given: Iterable[str], accepted: Collection[str], *, call: str) -> None:
    """Raise TypeError for the first name of *given* that is not *accepted* by *call*, and name the nearest one."""
    for name in given:
        if name not in accepted:
            synonym = _SYNONYMS.get(name)
            close = [synonym] if synonym in accepted else get_close_matches(name, accepted, n=1, cutoff=0.5)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"{call} takes no keyword {name!r}.{hint} It takes {', '.join(sorted(accepted))}")


def suggests_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate *function* so that an unknown keyword raises the TypeError of `require_keywords`."""

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError:
            _require_parameters(function, kwargs)
            raise

    return checked


def _require_parameters(function: Callable[..., object], given: Iterable[str]) -> None:
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return
    names = [parameter.name for parameter in parameters if parameter.kind is not inspect.Parameter.POSITIONAL_ONLY]
    call = function.__qualname__.removesuffix(".__init__")
    require_keywords(given, [name for name in names if name != "self" and not name.startswith("_")], call=call)
