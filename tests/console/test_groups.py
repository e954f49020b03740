"""The list of groups: lag and dead letters, requested for a few groups at a time."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Route, expect

from tests.built_store import BuiltStore
from tests.console.watched import Watched
from tests.query_server import serve_query

Look = Callable[..., Watched]
MANY = 30


def cells(page: Watched, group: str) -> list[str]:
    """Return the group's row."""
    return (
        page.main.locator("tr", has=page.page.get_by_role("link", name=group, exact=True))
        .locator("td")
        .all_inner_texts()
    )


def test_the_list_has_the_lag_and_the_dead_letters_of_each_group(look: Look, store: BuiltStore) -> None:
    """The number of dead letters is a link to them."""
    store.topic("%DLQ%billing")
    for number in range(3):
        store.append("%DLQ%billing", b"dead %d" % number)
    store.publish()
    with serve_query(store.root) as client:
        for group, offset in (("billing", 20), ("mailing", 50)):
            path = f"/v1/groups/{group}/topics/orders/queues/0/offset"
            client.put(path, json={"offset": offset}).raise_for_status()
        page = look(str(client.base_url), "#/groups")
        expect(page.main.get_by_text("…")).to_have_count(0)
        assert cells(page, "billing")[-2:] == ["30", "3"]
        assert cells(page, "mailing")[-2:] == ["0", "none"]
        page.main.get_by_role("link", name="Dead letters of billing").click()
        expect(page.main.locator(".opener")).to_have_text(["0 / 2", "0 / 1", "0 / 0"])


def test_lag_is_requested_for_a_few_groups_at_a_time(look: Look, store: BuiltStore) -> None:
    """A refused group has a dash, and the others follow."""
    with serve_query(store.root) as client:
        for number in range(MANY):
            path = f"/v1/groups/g{number:02}/topics/orders/queues/0/offset"
            client.put(path, json={"offset": number}).raise_for_status()
        page = look(str(client.base_url))
        waiting: list[Route] = []
        most = 0

        def hold(route: Route) -> None:
            nonlocal most
            waiting.append(route)
            most = max(most, len(waiting))

        page.page.route("**/v1/groups/*", hold)
        page.page.evaluate("() => { location.hash = '#/groups' }")
        expect(page.main.get_by_role("link", name="g00", exact=True)).to_be_visible()
        for number in range(MANY):
            page.page.wait_for_timeout(30)
            route = waiting.pop(0)
            if number == 1:
                route.fulfill(status=403, json={"reason": "FORBIDDEN", "detail": "no"})
            else:
                route.continue_()
        expect(page.main.get_by_text("…")).to_have_count(0)
        assert 1 < most <= 4
        assert cells(page, "g00")[-2] == "50" and cells(page, "g01")[-2] == "–"
        assert cells(page, f"g{MANY - 1}")[-2] == str(50 - MANY + 1)
