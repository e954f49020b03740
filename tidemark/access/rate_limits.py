"""RateLimits: limits requests and bytes per second of each caller, by GCRA: a token bucket that stores a time instead
of a count (throttled-py, on the monotonic clock)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.errors import RateLimitedError

if TYPE_CHECKING:
    from throttled import Throttled

_MOST_CALLERS = 10_000
_LEAST_RETRY_MS = 1


class RateLimits:
    """Rate limits per caller.

    requests_per_s, append_bytes_per_s  limits of callers without a limit of their own; 0: no limit
    greatest_append_bytes               an append of this size is admitted at once even if the limit is lower
    """

    def __init__(self, *, requests_per_s: int = 0, append_bytes_per_s: int = 0, greatest_append_bytes: int = 0) -> None:
        self.requests_per_s = requests_per_s
        self.append_bytes_per_s = append_bytes_per_s
        self._greatest_append_bytes = greatest_append_bytes
        self._limiters: dict[tuple[str, int], Throttled] = {}

    @property
    def are_set(self) -> bool:
        """True if callers without a limit of their own have one."""
        return bool(self.requests_per_s or self.append_bytes_per_s)

    def take_request(self, caller: str, own_limit: int | None) -> None:
        """Count one request of *caller*. Raises RateLimitedError above the limit."""
        limit = self.requests_per_s if own_limit is None else own_limit
        if limit:
            self._take("requests", caller, limit, limit, 1)

    def take_append(self, caller: str, own_limit: int | None, size: int) -> None:
        """Count *size* bytes to append. Raises RateLimitedError above the limit."""
        limit = self.append_bytes_per_s if own_limit is None else own_limit
        if limit:
            burst = max(limit, self._greatest_append_bytes)
            self._take("append_bytes", caller, limit, burst, min(size, burst))

    def _take(self, what: str, caller: str, limit: int, burst: int, cost: int) -> None:
        limiter = self._limiters.get((what, limit))
        if limiter is None:
            limiter = self._limiters[what, limit] = _limiter(limit, burst)
        found = limiter.limit(caller, cost=cost)
        if found.limited:
            retry_after_ms = max(_LEAST_RETRY_MS, round(found.state.retry_after * 1000))
            raise RateLimitedError(
                f"{caller} exceeds {limit} {what} per second",
                limit=limit,
                of=what,
                retry_after_ms=retry_after_ms,
            )


def _limiter(limit: int, burst: int) -> Throttled:
    from throttled import RateLimiterType, Throttled, rate_limiter, store  # imported here because it takes 125 ms

    return Throttled(
        using=RateLimiterType.GCRA.value,
        quota=rate_limiter.per_sec(limit, burst=burst),
        store=store.MemoryStore(options={"MAX_SIZE": _MOST_CALLERS}),
    )
