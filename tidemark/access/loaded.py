"""LoadedAccess: the checked contents of an access file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tidemark.access.authenticator import Authenticator
    from tidemark.access.rule import Policy


class Rates(NamedTuple):
    """Rate limits of one principal. None: the limit of the service; 0: no limit."""

    requests_per_s: int | None
    append_bytes_per_s: int | None


class LoadedAccess(NamedTuple):
    """Contents of an access file. rates: by principal"""

    authenticator: Authenticator
    policy: Policy
    rates: Mapping[str, Rates]
