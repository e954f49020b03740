"""Guard: authenticates, authorises and rate-limits every request of a service. Caller: the client of one request."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from tidemark.access.audit import Audit, Deed
from tidemark.access.identity import Identity, KnownCaller, Presented
from tidemark.access.loaded import LoadedAccess, Rates
from tidemark.access.rate_limits import RateLimits
from tidemark.access.right import Right
from tidemark.errors import ForbiddenError, StoreError, UnauthenticatedError
from tidemark.settings.reloaded_files import ReloadedFiles
from tidemark.status import status_of

Access = ReloadedFiles[LoadedAccess]
ALLOWED = "ALLOWED"
_NO_RATES = Rates(None, None)
_ANYBODY = Identity("", frozenset())


class Guard:
    """Access check of a service.

    access   None: every caller may do everything, and rate limits apply per address
    audit    None: no audit log
    is_open  True if there are neither rules nor limits nor a log: no check of a caller has an effect
    """

    def __init__(self, access: Access | None, rates: RateLimits, audit: Audit | None) -> None:
        self.access = access
        self.rates = rates
        self.audit = audit
        self.is_open = access is None and audit is None and not rates.are_set
        self.refused: Counter[str] = Counter()  # count by reason
        self.anyone = Caller(self, Presented(None, None), address="", action="")  # every caller, if the guard is open

    def followers(self) -> list[Coroutine[Any, Any, None]]:
        """Return the coroutines that the service must run until it stops: file reload and audit counts."""
        return [one.follow() for one in (self.access, self.audit) if one is not None]

    def close(self) -> None:
        """Write the remaining audit counts."""
        if self.audit is not None:
            self.audit.close()

    def admit(self, presented: Presented, *, address: str, action: str) -> Caller:
        """Authenticate the caller of *action* and count the request. address: IP, without port.

        Raises UnauthenticatedError or RateLimitedError. Unauthenticated requests are rate-limited per address.
        """
        caller = self.caller(presented, address=address, action=action)
        caller.admit()
        return caller

    def caller(self, presented: Presented, *, address: str, action: str) -> Caller:
        """Return a caller that is not admitted yet; one caller may be admitted for many requests."""
        return Caller(self, presented, address=address, action=action)


class Caller:
    """Client of one request or stream. Checks again during a stream: its token may expire, and the rules may change.

    is_open: of its guard; then `admit`, `require`, `take_request` and `take_append` do nothing and may be left out.
    """

    def __init__(self, guard: Guard, presented: Presented, *, address: str, action: str) -> None:
        self.is_open = guard.is_open
        self._guard = guard
        self._presented = presented
        self._address = address
        self._action = action
        self._by: LoadedAccess | None = None
        self._known = KnownCaller(_ANYBODY, float("inf"))
        self._own = _NO_RATES

    @property
    def name(self) -> str:
        """Name of the principal; empty if there is no access file."""
        return self._known.identity.name

    def admit(self) -> None:
        """Authenticate the caller and count one request, as `Guard.admit`."""
        try:
            self.refresh()
        except UnauthenticatedError as error:
            self.refused("", error)
            self.take_request()
            raise
        self.take_request()

    def refresh(self) -> None:
        """Identify the caller again if its token expired or the access file changed. Raises UnauthenticatedError."""
        access = self._guard.access
        if access is None:
            return
        loaded = access.current
        if loaded is not self._by or self._known.expires <= time.time():
            self._known = KnownCaller(_ANYBODY, float("inf"))
            self._by = None
            self._own = _NO_RATES
            self._known = loaded.authenticator.identify(self._presented)
            self._by = loaded
            self._own = loaded.rates.get(self.name, _NO_RATES)

    def may(self, right: Right) -> bool:
        """Return True if *right* is allowed now. Raises UnauthenticatedError if the caller is no longer known."""
        self.refresh()
        return self._by is None or self._by.policy.allows(self._known.identity, right, self._address)

    def require(self, right: Right) -> None:
        """Check *right* and write to the audit log. Raises ForbiddenError or UnauthenticatedError."""
        try:
            if not self.may(right):
                raise ForbiddenError(f"{self.name} is not allowed to {right}", principal=self.name, right=str(right))
        except StoreError as error:
            self.refused(str(right), error)
            raise
        if self._guard.audit is not None and not right.changes:  # changes are noted with their outcome
            self.note(str(right), ALLOWED)

    def take_request(self) -> None:
        """Count one request. Raises RateLimitedError."""
        rates, own = self._guard.rates, self._own.requests_per_s
        if rates.requests_per_s or own is not None:
            self._take(lambda: rates.take_request(self._payer, own))

    def take_append(self, size: int) -> None:
        """Count *size* bytes to append. Raises RateLimitedError."""
        rates, own = self._guard.rates, self._own.append_bytes_per_s
        if rates.append_bytes_per_s or own is not None:
            self._take(lambda: rates.take_append(self._payer, own, size))

    def note(self, resource: str, outcome: str, *, changes: bool = False) -> None:
        """Write the outcome to the audit log."""
        audit = self._guard.audit
        if audit is not None:
            deed = Deed(self.name, self._address, self._action, resource, outcome)
            (audit.note_change if changes else audit.note)(deed)

    def refused(self, resource: str, error: StoreError) -> None:
        """Count the refusal and write it to the audit log."""
        reason = status_of(error).reason
        self._guard.refused[reason] += 1
        self.note(resource, reason)

    @property
    def _payer(self) -> str:
        return self.name or self._address

    def _take(self, take: Callable[[], None]) -> None:
        try:
            take()
        except StoreError as error:
            self.refused("", error)
            raise
