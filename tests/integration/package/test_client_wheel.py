"""`tidemark[client]` from the wheel, in an environment that has nothing else."""

from __future__ import annotations

import json
import subprocess
import uuid
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.integration.package.conftest import Installed
from tidemark.local.local_stack import LocalStack

pytestmark = [pytest.mark.integration, pytest.mark.slow]

MOST_BYTES = 62_000_000
DISTRIBUTIONS = {
    "tidemark", "orjson", "httptools",
    "grpcio", "grpcio-status", "protobuf", "googleapis-common-protos",
    "pydantic", "pydantic-core", "pydantic-settings", "annotated-types", "python-dotenv", "typing-inspection",
    "typing-extensions",
    "typer", "rich", "annotated-doc", "shellingham", "markdown-it-py", "mdurl", "pygments",
}  # fmt: skip
HEAVY = ("numpy", "numba", "pyarrow", "pandas", "pyspark", "fastapi", "services")

LIST_DISTRIBUTIONS = """
import importlib.metadata, json
print(json.dumps([found.metadata["Name"] for found in importlib.metadata.distributions()]))
"""
FIND_HEAVY = f"""
import importlib.util
print([name for name in {HEAVY} if importlib.util.find_spec(name) is not None])
"""
HELP_OF_ALL = """
from typer.main import get_command
from typer.testing import CliRunner
from tidemark.cli.main import app

def verbs(command, *words):
    yield words
    for name, child in getattr(command, "commands", {}).items():
        yield from verbs(child, *words, name)

helped = []
for words in verbs(get_command(app)):
    shown = CliRunner().invoke(app, [*words, "--help"])
    assert shown.exit_code == 0 and "Usage" in shown.stdout, (words, shown.output, shown.exception)
    helped.append(" ".join(words))
print(";".join(helped), end="")
"""
SEND_AND_CONSUME = """
from tidemark.client import Consumer, Producer

count = 100
with Producer() as producer:
    for number in range(count):
        producer.send_async(TOPIC, str(number).encode(), key=f"k{number}", tag="A", properties={"n": str(number)})
with Consumer(TOPIC) as consumer:
    got = []
    while len(got) < count:
        got += consumer.poll(30)
assert sorted(int(message.text()) for message in got) == list(range(count))
assert {(message.tag, message.properties["n"] == message.text()) for message in got} == {("A", True)}
print("consumed", len(got))
"""


def test_the_wheel_has_only_tidemarks_top_level_modules(wheel: Path) -> None:
    """A top-level package named services would conflict with other programs. The extension depends on the machine."""
    with ZipFile(wheel) as archive:
        names = {name.partition("/")[0] for name in archive.namelist()}
    ours = {"tidemark", "tidemark_services", "pyspark_tidemark"}
    modules = {name.partition(".")[0] for name in names if not name.endswith(".dist-info")}
    assert modules - {"_tidemark_loops"} == ours


def test_the_client_installs_only_the_listed_distributions(client: Installed) -> None:
    """A further one is a decision: add it here."""
    names = json.loads(client.run(LIST_DISTRIBUTIONS).stdout)
    assert {name.lower().replace("_", "-") for name in names} - {"colorama"} == DISTRIBUTIONS


def test_the_client_is_small(client: Installed) -> None:
    """It is compiled, without pip and setuptools, which the environment does not have."""
    size = sum(path.stat().st_size for path in client.site_packages.rglob("*") if path.is_file())
    assert size < MOST_BYTES, f"{size / 1e6:.1f} MB"


def test_nothing_heavy_can_be_imported(client: Installed) -> None:
    """The other tests of this environment therefore need neither Arrow nor Spark."""
    assert client.run(FIND_HEAVY).stdout.strip() == "[]"


def test_every_verb_has_help_with_the_client_wheel(client: Installed) -> None:
    """This includes verbs that need more than the client; one process runs all."""
    done = client.run(HELP_OF_ALL)
    assert done.returncode == 0, done.stderr
    helped = set(done.stdout.split(";"))
    assert {"", "serve", "produce", "dlq redrive", "store check", "log cat"} <= helped


@pytest.mark.spark
def test_lines_are_produced_and_consumed_by_the_command(client: Installed, stack: LocalStack) -> None:
    """Lines need no pyarrow; for CSV the error names the extra."""
    addresses = {"TIDEMARK_WRITER_ADDRESS": stack.writer_address, "TIDEMARK_QUERY_URL": stack.query_url}
    topic = f"wheel-{uuid.uuid4().hex[:8]}"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(client.folder / "bin" / "tidemark"), *arguments]
        return subprocess.run(
            command, input="a\nb\n", env=addresses, capture_output=True, text=True, timeout=60, check=False
        )

    produced = run("produce", topic)
    assert (produced.returncode, "2 messages are acknowledged" in produced.stderr) == (0, True), produced
    consumed = run("consume", topic, "--follow", "--max", "2", "--output", "raw")
    assert sorted(consumed.stdout.splitlines()) == ["a", "b"], consumed
    refused = run("produce", topic, "--format", "csv")
    assert (refused.returncode, "tidemark[client,table]" in refused.stderr) == (5, True), refused


@pytest.mark.spark
def test_the_client_wheel_sends_and_consumes(client: Installed, stack: LocalStack) -> None:
    """The services run; there is no Java on the path."""
    addresses = {"TIDEMARK_WRITER_ADDRESS": stack.writer_address, "TIDEMARK_QUERY_URL": stack.query_url}
    topic = f"wheel-{uuid.uuid4().hex[:8]}"
    done = client.run(f"TOPIC = {topic!r}\n{SEND_AND_CONSUME}", **addresses)
    assert done.stdout == "consumed 100\n", done.stderr
