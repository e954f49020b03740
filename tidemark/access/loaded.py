"""Loaded: what an access file says, ready to be asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tidemark.access.authenticator import Authenticator
    from tidemark.access.rule import Policy


class Rates(NamedTuple):
    """Of one principal. None: as the service is set; 0: no limit."""

    requests_per_s: int | None
    append_bytes_per_s: int | None


class Loaded(NamedTuple):
    """rates: by principal"""

    authenticator: Authenticator
    policy: Policy
    rates: Mapping[str, Rates]
