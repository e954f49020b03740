"""The overview of a member of a replication group, and of a store that follows a broker."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from tests.built_store import BuiltStore
from tests.console.watched import Watched
from tests.query_server import serve_query
from tidemark.replication.followed_broker import FollowedBroker, save_followed_broker
from tidemark.replication.group_state import GroupState
from tidemark.replication.member_files import MemberFiles
from tidemark.replication.member_role import PublishedRole
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

Look = Callable[..., Watched]
A, B = (f"{name}.{name * 32}" for name in "ab")


def test_a_replica_shows_its_group(look: Look, store: BuiltStore) -> None:
    paths, storage = StorePaths(store.root), DiskStorage()
    role = PublishedRole(paths.replication, storage)
    state = GroupState(3, 7, A, frozenset({A, B}), frozenset(), 2)
    MemberFiles(paths.replication, storage).save_state(state)
    with serve_query(store.root) as client:
        page = look(str(client.base_url), "#/")
        card = page.main.locator(".card", has=page.page.get_by_role("heading", name="Replication"))
        for text in ("replica", "a, b", "7"):
            expect(card).to_contain_text(text)
    role.close()


def test_a_broker_that_is_not_followed_is_the_verdict(look: Look, store: BuiltStore) -> None:
    folder = StorePaths(store.root).follow
    folder.mkdir(parents=True)
    save_followed_broker(folder, FollowedBroker("broker-a", "10.0.0.1:10911", False, None, "it does not answer", 1))
    with serve_query(store.root) as client:
        page = look(str(client.base_url), "#/")
        expect(page.main.locator(".verdict")).to_contain_text("broker-a is not followed: it does not answer")
        expect(page.main.locator(".card", has_text="Followed broker")).to_contain_text("10.0.0.1:10911")


def test_a_store_of_its_own_has_no_such_card(look: Look, url: str) -> None:
    page = look(url, "#/")
    expect(page.main.locator(".card").first).to_be_visible()
    expect(page.page.get_by_role("heading", name="Replication")).to_be_hidden()
