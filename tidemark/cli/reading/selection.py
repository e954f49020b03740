"""Selection: the messages that a `consume` asks for."""

from __future__ import annotations

from typing import NamedTuple

import typer

from tidemark.cli.reading.queue_places import PlaceKind, StartPlace


class Selection(NamedTuple):
    """The requested queues, range, filter and order. tail: the number of newest messages; most: None for all."""

    queue_ids: list[int]
    first: StartPlace
    last: StartPlace | None
    tags: list[str]
    key: str | None
    group: str | None
    follow: bool
    by_time: bool
    tail: int | None
    most: int | None

    def require_fit(self) -> None:
        """Raise a usage error for options that cannot be combined."""
        if self.by_time and self.follow:
            raise typer.BadParameter(
                "cannot be combined with --follow, which prints messages as they arrive", param_hint="--by-time"
            )
        if self.group is not None:
            self._require_fit_for_group()
        if self.key is not None:
            self._require_fit_for_key()

    @property
    def _is_ordered(self) -> bool:
        return self.by_time or self.tail is not None

    def _require_fit_for_group(self) -> None:
        if self.key is not None or self.queue_ids or self.last or self._is_ordered:
            raise typer.BadParameter(
                "cannot be combined with --key, --queue, --to, --tail and --by-time", param_hint="--group"
            )
        if self.first.kind is PlaceKind.OFFSET:
            raise typer.BadParameter(
                "an offset applies to a single queue: with --group, give earliest, latest or a time",
                param_hint="--from",
            )

    def _require_fit_for_key(self) -> None:
        is_time = self.first.kind in (PlaceKind.EARLIEST, PlaceKind.TIME) and (
            self.last is None or self.last.kind is PlaceKind.TIME
        )
        if self.queue_ids or self.tags or self.follow or self._is_ordered or not is_time:
            raise typer.BadParameter(
                "can only be combined with --max, and with times for --from and --to", param_hint="--key"
            )
