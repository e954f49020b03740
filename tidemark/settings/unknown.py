"""Detection of variables TIDEMARK_… that are no settings, so that a typing error does not silently give a default.

All services and clients of a machine share one environment, so a name is known if any of them reads it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping

from tidemark.settings.registry import CLIENT, PREFIX, SERVICES, settings_class, variable

_SWITCHES = frozenset({"TIDEMARK_NO_FUTEX", "TIDEMARK_CONTEXT"})  # read by tidemark.store.wake and tidemark.cli
_OF_A_CLUSTER = re.compile(  # Kubernetes sets these for a Service named `tidemark` or `tidemark-…`
    r"TIDEMARK(_\w+)?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)"
)


def unknown_settings(environment: Mapping[str, str]) -> list[str]:
    """Return a line for each unknown variable TIDEMARK_…, with the most similar known name."""
    names = [name for name in sorted(environment) if name.upper().startswith(PREFIX)]
    unknown = [name for name in names if not _is_of_a_cluster(name, environment[name])]
    known: set[str] = set(_SWITCHES)
    for more in _known_names():  # stop early: importing all classes is slow
        known |= more
        unknown = [name for name in unknown if name.upper() not in known]
        if not unknown:
            return []
    return [_explanation(name, known) for name in unknown]


def _known_names() -> Iterator[set[str]]:
    for name in (*SERVICES, CLIENT):
        yield {variable(field) for field in settings_class(name).model_fields}


def _is_of_a_cluster(name: str, value: str) -> bool:
    return bool(_OF_A_CLUSTER.fullmatch(name)) or (name.endswith("_PORT") and "://" in value)


def _explanation(name: str, known: set[str]) -> str:
    without_prefix = [one.removeprefix(PREFIX) for one in sorted(known)]
    nearest = difflib.get_close_matches(name.upper().removeprefix(PREFIX), without_prefix, n=1)
    hint = f"did you mean {PREFIX}{nearest[0]}?" if nearest else "`tidemark config show` lists all settings"
    return f"{name}: unknown setting; {hint}"
