"""The id of the request that is being answered: in every line that is logged for it, and in its answer."""

from __future__ import annotations

import itertools
import re
import secrets
from contextvars import ContextVar

from structlog.contextvars import STRUCTLOG_KEY_PREFIX

HEADER = "x-request-id"
_SANE = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
_PREFIX = secrets.token_hex(6)  # of this process
_numbers = itertools.count(1)
# By this name structlog takes it for its own, and adds it to what is logged; `bind_contextvars` would take 2 µs.
_current: ContextVar[str | None] = ContextVar(f"{STRUCTLOG_KEY_PREFIX}request_id", default=None)


def begin_request(given: str | None) -> str:
    """The id of a request that begins in this task: the one that the caller has *given*, where that is sane, else a new
    one."""
    request_id = given if given is not None and _SANE.fullmatch(given) else f"{_PREFIX}-{next(_numbers):x}"
    _current.set(request_id)
    return request_id


def current_request_id() -> str | None:
    """Of the request that this task answers."""
    return _current.get()
