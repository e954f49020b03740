"""The benchmark's key lookups on a real broker, which misses a key that is older than many entries of the same hash."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from benchmarks.peers.peer import Answer, Load, PeerFailedError
from benchmarks.peers.toolchain import load_programs, make_toolchain

from .real_broker import RealBroker, rocketmq
from .rocket_client import ToSend

pytestmark = [pytest.mark.conformance, pytest.mark.exhaustive]
HIDDEN, HIDING, ALONE, NEVER_SENT = "Aa", "BB", "alone", "never"  # Java gives the first two the same hash
HIDING_MESSAGES = 100  # an answer of the broker has room for 32 entries
DEADLINE_S = 30.0


def test_lookups_that_the_broker_misses_are_counted_and_not_measured(tmp_path: Path) -> None:
    with RealBroker(tmp_path / "store", tmp_path / "work") as broker:
        broker.client.create_topic("lookup", queues=1)
        broker.client.send("lookup", 0, ToSend(b"first", keys=(HIDDEN,)))
        broker.client.send_batch("lookup", 0, [ToSend(b"newer", keys=(HIDING,)) for _ in range(HIDING_MESSAGES)])
        broker.client.send("lookup", 0, ToSend(b"last", keys=(ALONE,)))
        _wait_until_indexed(broker, ALONE)
        answer = _look_up(broker, tmp_path, [HIDDEN, ALONE])
        assert (answer["samples"], answer["lost"]) == (1, 1)
        with pytest.raises(PeerFailedError, match="not found"):
            _look_up(broker, tmp_path, [HIDDEN, ALONE, NEVER_SENT])


def _wait_until_indexed(broker: RealBroker, key: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not broker.client.query_key("lookup", key):
        assert time.monotonic() < deadline, f"{key} was never indexed"
        time.sleep(0.05)


def _look_up(broker: RealBroker, folder: Path, keys: list[str]) -> Answer:
    samples = folder / "samples"
    samples.write_text("".join(f"{key} -\n" for key in keys))
    settings = {
        "server": broker.name_server_address,
        "user.home": folder,
        "topic": "lookup",
        "by": "key",
        "samples_file": samples,
        "warm_ups": len(keys),
        "hot": len(keys),
        "skip": 0,
        "lookups": len(keys),
        "stepwise": 0,
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    toolchain = make_toolchain(rocketmq(), load_programs(rocketmq()))
    with Load(toolchain.java("Lookup", options=options), folder / "errors") as load:
        return load.answer()
