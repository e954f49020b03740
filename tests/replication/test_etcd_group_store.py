"""The group's state in a real etcd of three members, of which one may fail."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.etcd import Etcd
from tests.waiting import until
from tidemark.errors import GroupStoreUnavailableError, StaleEpochError
from tidemark.replication.etcd.gateway import EtcdGateway, EtcdLogin, encoded
from tidemark.replication.etcd.group_store import EtcdGroupStore, Seen
from tidemark.replication.group_state import GroupState
from tidemark.replication.known_state import KnownState
from tidemark.replication.member_files import MemberFiles
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.integration
FIRST = GroupState(0, 1, "a.1", frozenset({"a.1"}), frozenset({"b.2"}), 2, "g")
TTL_MS = 2_000

Open = Callable[..., EtcdGroupStore]


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    made = Etcd(tmp_path_factory.mktemp("etcd"), 3)
    yield made
    made.close()


@pytest.fixture
def open_store(etcd: Etcd, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Open]:
    """Return a function that opens the group of this test for another member."""
    opened: list[EtcdGroupStore] = []

    def open_one(of: Etcd = etcd, timeout_s: float = 2) -> EtcdGroupStore:
        known = KnownState(MemberFiles(tmp_path / str(len(opened)), DiskStorage()))
        gateway = EtcdGateway([f"http://127.0.0.1:{port}" for port in of.ports], timeout_s=timeout_s)
        opened.append(EtcdGroupStore(gateway, request.node.name, known, ttl_ms=TTL_MS))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


def test_a_state_is_replaced_only_by_who_has_seen_it(open_store: Open) -> None:
    a, b = open_store(), open_store()
    assert a.look() == Seen(None, None, 0)
    taken = a.elect(FIRST, holder=None)
    assert taken is not None
    elected, _ = taken
    assert replace(elected, revision=0) == FIRST
    assert b.look() == Seen(elected, "a.1", 0)
    joined = b.propose(elected.joined_by("b.2"))
    assert joined.in_sync == {"a.1", "b.2"}
    assert joined.revision > elected.revision
    assert a.propose(elected.joined_by("c.3")) == joined, "the state has changed meanwhile"
    assert a.propose(joined.joined_by("c.3")).in_sync == {"a.1", "b.2", "c.3"}


def test_one_of_many_candidates_is_elected(open_store: Open) -> None:
    taken: dict[str, object] = {}
    stores = {f"m{number}": open_store() for number in range(8)}

    def stand(name: str, store: EtcdGroupStore) -> None:
        taken[name] = store.elect(replace(FIRST, writer=name), holder=None)

    threads = [threading.Thread(target=stand, args=one) for one in stores.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [name for name, result in taken.items() if result is not None]
    assert len(winners) == 1
    assert stores["m0"].look().holder == winners[0]


def test_while_the_lease_is_held_nobody_else_is_elected_and_after_it_somebody_is(open_store: Open) -> None:
    a, b = open_store(), open_store()
    taken = a.elect(FIRST, holder=None)
    assert taken is not None
    state, lease = taken
    after = replace(state.elected("b.2"), min_in_sync=2)
    for _ in range(3):
        lease.renew()
        assert b.elect(after, holder=None) is None
        time.sleep(TTL_MS / 4_000)
    assert lease.remaining_s > 0
    until(lambda: b.look().holder is None, "the lease has run out", 20)
    assert lease.remaining_s <= 0, "the holder knows that before any other member"
    with pytest.raises(StaleEpochError, match="epoch 1 has run out"):
        lease.renew()
    assert b.elect(after, holder=None) is not None


def test_a_revoked_lease_is_free_at_once_and_a_member_takes_back_its_own(open_store: Open) -> None:
    a, b = open_store(), open_store()
    taken = a.elect(FIRST, holder=None)
    assert taken is not None
    again = a.elect(taken[0].elected("a.1"), holder="a.1")
    assert again is not None, "after a quick restart"
    again[1].revoke()
    assert again[1].remaining_s <= 0
    assert b.look().holder is None


def test_the_request_to_yield_vanishes(open_store: Open) -> None:
    a = open_store()
    a.ask_to_yield(7)
    assert a.look().asked_epoch == 7
    until(lambda: a.look().asked_epoch == 0, "it vanishes", 20)


def test_a_value_of_another_program_is_named(open_store: Open, etcd: Etcd, request: pytest.FixtureRequest) -> None:
    key, value = (encoded(data) for data in (f"/tidemark/{request.node.name}/state".encode(), b"{}"))
    with closing(EtcdGateway([f"http://127.0.0.1:{etcd.ports[0]}"], timeout_s=5)) as gateway:
        gateway.call("/v3/kv/put", {"key": key, "value": value})
    with pytest.raises(GroupStoreUnavailableError, match="a value that is not Tidemark's"):
        open_store().look()


def test_one_of_three_members_of_etcd_may_fail_and_two_may_not(open_store: Open, etcd: Etcd) -> None:
    a = open_store()
    etcd.kill(0)
    try:
        until(lambda: is_answered(a), "the others elect a leader")
        taken = a.elect(FIRST, holder=None)
        assert taken is not None
        etcd.kill(1)
        with pytest.raises(GroupStoreUnavailableError, match="no member of etcd answers"):
            a.propose(taken[0].joined_by("b.2"))
    finally:
        etcd.start(0)
        etcd.start(1)
    until(lambda: is_answered(a), "etcd is whole again")
    assert a.look().state in (taken[0], replace(taken[0].joined_by("b.2"), revision=a.look().state.revision))  # type: ignore[union-attr]


def test_an_etcd_that_is_paused_while_many_look_goes_on(tmp_path: Path, open_store: Open) -> None:
    """etcd before 3.5.7 can crash when it continues a read-only transaction whose client is gone."""
    looking = threading.Event()
    looking.set()

    def look() -> None:
        while looking.is_set():
            is_answered(store)

    with closing(Etcd(tmp_path / "paused")) as etcd, ThreadPoolExecutor(64) as threads:
        assert open_store(etcd).elect(FIRST, holder=None) is not None
        store = open_store(etcd, timeout_s=0.1)
        looks = [threads.submit(look) for _ in range(64)]
        for _ in range(20):
            etcd.signal(signal.SIGSTOP)
            time.sleep(0.3)
            etcd.signal(signal.SIGCONT)
            time.sleep(0.2)
        looking.clear()
        for one in looks:
            one.result()
        until(lambda: is_answered(store), "etcd answers", 20, found=etcd.log)


def test_a_user_needs_the_keys_of_its_group_only(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("secret\n")
    with closing(Etcd(tmp_path / "etcd")) as etcd:
        url = f"http://127.0.0.1:{etcd.ports[0]}"
        require_login(url)
        known = KnownState(MemberFiles(tmp_path / "member", DiskStorage()))
        with closing(EtcdGateway([url], timeout_s=5, login=EtcdLogin("member", password))) as gateway:
            store = EtcdGroupStore(gateway, "g", known, ttl_ms=TTL_MS)
            taken = store.elect(FIRST, holder=None)
            assert taken is not None
            taken[1].renew()
            store.ask_to_yield(1)
            assert store.look() == Seen(taken[0], "a.1", 1)
            taken[1].revoke()
            with pytest.raises(GroupStoreUnavailableError, match="permission denied"):
                EtcdGroupStore(gateway, "other", known, ttl_ms=TTL_MS).look()
        with (
            closing(EtcdGateway([url], timeout_s=5)) as anonymous,
            pytest.raises(GroupStoreUnavailableError, match="user name is empty"),
        ):
            EtcdGroupStore(anonymous, "g", known, ttl_ms=TTL_MS).look()


def require_login(url: str) -> None:
    """Let only the user "member" use the keys of the group "g"."""
    keys = {"key": encoded(b"/tidemark/g/"), "range_end": encoded(b"/tidemark/g0")}
    with closing(EtcdGateway([url], timeout_s=5)) as gateway:
        for user, role in (("root", "root"), ("member", "of-g")):
            gateway.call("/v3/auth/role/add", {"name": role})
            gateway.call("/v3/auth/user/add", {"name": user, "password": "secret"})
            gateway.call("/v3/auth/user/grant", {"user": user, "role": role})
        gateway.call("/v3/auth/role/grant", {"name": "of-g", "perm": {"permType": "READWRITE", **keys}})
        gateway.call("/v3/auth/enable", {})


def is_answered(store: EtcdGroupStore) -> bool:
    try:
        store.look()
    except GroupStoreUnavailableError:
        return False
    return True
