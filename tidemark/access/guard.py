"""Guard: what stands before every request of a service. Caller: one of those who ask."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from tidemark.access.audit import Audit, Deed
from tidemark.access.identity import Identity, Known, Presented
from tidemark.access.loaded import Loaded, Rates
from tidemark.access.rate_limits import RateLimits
from tidemark.access.right import Right
from tidemark.errors import ForbiddenError, StoreError, UnauthenticatedError
from tidemark.settings.reloaded_files import ReloadedFiles
from tidemark.status import status_of

Access = ReloadedFiles[Loaded]
ALLOWED = "ALLOWED"
_NO_RATES = Rates(None, None)
_ANYBODY = Identity("", frozenset())


class Guard:
    """access: None where everybody may do everything, and rates go by address; audit: None where nothing is told."""

    def __init__(self, access: Access | None, rates: RateLimits, audit: Audit | None) -> None:
        self.access = access
        self.rates = rates
        self.audit = audit
        self.refused: Counter[str] = Counter()  # by reason

    def followers(self) -> list[Coroutine[Any, Any, None]]:
        """For the service to run as long as it lives: files are read again, repeats told."""
        return [one.follow() for one in (self.access, self.audit) if one is not None]

    def close(self) -> None:
        """The service ends: what was counted is told."""
        if self.audit is not None:
            self.audit.close()

    def admit(self, presented: Presented, *, address: str, action: str) -> Caller:
        """Who asks for *action*, from *address* (IP, without port), and once more.

        raises UnauthenticatedError, RateLimitedError: of those whom nobody knows each address has its rate
        """
        caller = Caller(self, presented, address=address, action=action)
        try:
            caller.refresh()
        except UnauthenticatedError as error:
            caller.refused("", error)
            caller.take_request()
            raise
        caller.take_request()
        return caller


class Caller:
    """Of one request, or of one stream, for as long as it lasts: its token may expire, and the rules may change."""

    def __init__(self, guard: Guard, presented: Presented, *, address: str, action: str) -> None:
        self._guard = guard
        self._presented = presented
        self._address = address
        self._action = action
        self._by: Loaded | None = None
        self._known = Known(_ANYBODY, float("inf"))

    @property
    def name(self) -> str:
        """Of the principal; empty where nobody is asked who they are."""
        return self._known.identity.name

    def refresh(self) -> None:
        """Be sure who this is, by what the access file says now. UnauthenticatedError."""
        access = self._guard.access
        if access is None:
            return
        loaded = access.current
        if loaded is not self._by or self._known.expires <= time.time():
            self._known = Known(_ANYBODY, float("inf"))
            self._by = None
            self._known = loaded.authenticator.identify(self._presented)
            self._by = loaded

    def may(self, right: Right) -> bool:
        """Whether *right* is allowed now. UnauthenticatedError where the caller is not known any more."""
        self.refresh()
        return self._by is None or self._by.policy.allows(self._known.identity, right, self._address)

    def require(self, right: Right) -> None:
        """ForbiddenError where it is not allowed, UnauthenticatedError; told in the audit log."""
        try:
            if not self.may(right):
                raise ForbiddenError(f"{self.name} may not {right}", principal=self.name, right=str(right))
        except StoreError as error:
            self.refused(str(right), error)
            raise
        if self._guard.audit is not None and not right.changes:  # else nobody wants to know what it is called
            self.note(str(right), ALLOWED)

    def take_request(self) -> None:
        """One more; RateLimitedError."""
        self._take(lambda rates, own: rates.take_request(self._payer, own.requests_per_s))

    def take_append(self, size: int) -> None:
        """So many bytes more; RateLimitedError."""
        self._take(lambda rates, own: rates.take_append(self._payer, own.append_bytes_per_s, size))

    def note(self, resource: str, outcome: str, *, changes: bool = False) -> None:
        """Tell the audit log what came of it."""
        audit = self._guard.audit
        if audit is not None:
            deed = Deed(self.name, self._address, self._action, resource, outcome)
            (audit.note_change if changes else audit.note)(deed)

    def refused(self, resource: str, error: StoreError) -> None:
        """Count it, and tell the audit log."""
        reason = status_of(error).reason
        self._guard.refused[reason] += 1
        self.note(resource, reason)

    @property
    def _payer(self) -> str:
        return self.name or self._address

    def _take(self, take: Callable[[RateLimits, Rates], None]) -> None:
        own = _NO_RATES if self._by is None else self._by.rates.get(self.name, _NO_RATES)
        try:
            take(self._guard.rates, own)
        except StoreError as error:
            self.refused("", error)
            raise
