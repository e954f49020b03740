from __future__ import annotations

import asyncio
from typing import NamedTuple

import pytest

from services.indexer.query.state.shared_pages import SharedPages


class Page(NamedTuple):
    number: int
    size: int = 100
    is_last: bool = True


class Reads:
    """Makes numbered pages, each after a pause."""

    def __init__(self, *, is_last: bool = True, size: int = 100, error: Exception | None = None) -> None:
        self.count = 0
        self._page = Page(0, size, is_last)
        self._error = error

    async def read(self) -> Page:
        self.count += 1
        page = self._page._replace(number=self.count)
        await asyncio.sleep(0.01)
        if self._error is not None:
            raise self._error
        return page


def test_followers_that_ask_at_the_same_time_share_a_read() -> None:
    reads, pages = Reads(is_last=False), SharedPages[Page]()

    async def main() -> list[Page]:
        return await asyncio.gather(*(pages.get("orders:0:7", reads.read) for _ in range(100)))

    assert {page.number for page in asyncio.run(main())} == {1}
    assert reads.count == 1


@pytest.mark.parametrize(
    ("reads", "count"),
    [(Reads(), 1), (Reads(is_last=False), 2), (Reads(size=1 << 20), 2)],
    ids=["kept", "not the last", "large"],
)
def test_only_small_pages_up_to_the_end_are_kept(reads: Reads, count: int) -> None:
    async def main() -> None:
        pages = SharedPages[Page]()
        await pages.get("a", reads.read)
        await pages.get("a", reads.read)

    asyncio.run(main())
    assert reads.count == count


def test_a_new_watermark_makes_all_pages_old_also_those_that_are_being_read() -> None:
    reads, pages = Reads(), SharedPages[Page]()

    async def main() -> list[int]:
        early = asyncio.ensure_future(pages.get("a", reads.read))
        await asyncio.sleep(0)
        pages.clear()
        late = await pages.get("a", reads.read)
        return [(await early).number, late.number, (await pages.get("a", reads.read)).number]

    early, late, again = asyncio.run(main())
    assert early != late
    assert again == late


def test_an_error_reaches_all_that_wait_and_is_not_kept() -> None:
    reads, pages = Reads(error=OSError("disk")), SharedPages[Page]()

    async def main() -> list[Page | BaseException]:
        return await asyncio.gather(*(pages.get("a", reads.read) for _ in range(3)), return_exceptions=True)

    assert [str(error) for error in asyncio.run(main())] == ["disk"] * 3
    assert reads.count == 1
    with pytest.raises(OSError, match="disk"):
        asyncio.run(pages.get("a", reads.read))
    assert reads.count == 2
