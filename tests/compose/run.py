"""The real compose stack: build, up, append, pull, compare, restart each service in the middle, down.

It runs once as it is; once with the profiles `cluster`, whose workers then must have the pipeline's tasks, and
`observability`, whose Prometheus must scrape all three services; once over TLS, with the profile `tls` and an access
file; and once with the profile `replicated`, whose group must elect another writer after the loss of one.

Run by `make compose-test`; plain Python, so it needs no .venv. Its own project name keeps its volumes apart from those
of
`make up`, but it needs the same ports. Without a Docker engine it prints SKIPPED and succeeds.
`python3 tests/compose/run.py PROJECT` checks a stack that already runs under that name, and leaves it running.
"""

import json
import os
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROJECT = "tidemark-compose-test"
TOPIC = "/v1/topics/compose-test"
TOKEN = "compose-test-token"  # of access/access.toml
BATCH = 50
DEADLINE_S = 120
SERVICES = ("writer", "indexer", "query")
CLUSTER = ("spark-worker-1", "spark-worker-2", "spark-master")
CLUSTER_SETTINGS = {
    "COMPOSE_PROFILES": "cluster,observability",
    "TIDEMARK_SPARK_MASTER": "spark://spark-master:7077",
    "TIDEMARK_SHARDS": "2",
}
GROUP_SETTINGS = {"COMPOSE_PROFILES": "replicated"}
MEMBERS = {"a": ("writer", "query", 8080), "b": ("writer-b", "query-b", 8180), "c": ("writer-c", "query-c", 8280)}
TLS_SETTINGS = {"COMPOSE_PROFILES": "tls", "STACK_TLS": "on", "STACK_ACCESS": "./tests/compose/access"}
ASK_MASTER = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:8090/json/').read().decode())"
UP = "http://127.0.0.1:9090/api/v1/query?query=up"
UNAVAILABLE = (421, 503, 504)  # also of a group that is electing its writer
KILLED = 137  # exit status of a container that ignored SIGTERM


def main() -> None:
    """Skip or run, and always remove the stack with its volumes."""
    if not engine_answers():
        print("SKIPPED: no Docker engine with compose answers here")
        return
    up_and_down()
    for settings in (CLUSTER_SETTINGS, TLS_SETTINGS, GROUP_SETTINGS):
        os.environ.update(settings)
        up_and_down()
        for name in settings:
            del os.environ[name]
    print("compose-test passed")


def up_and_down() -> None:
    """Start the stack, check it, and remove it in any case."""
    compose = ("compose", "--project-name", PROJECT)
    try:
        docker(*compose, "up", "--build", "--detach", "--wait")
        check_stack(PROJECT)
    except BaseException:
        docker(*compose, "ps", "--all", check=False)
        docker(*compose, "logs", "--tail", "100", check=False)
        raise
    finally:
        docker(*compose, "down", "--volumes", check=False)


def check_stack(project: str) -> None:
    """Append before and after a restart of each service; every message comes back once, in order."""
    sent: list[str] = []
    door = Door(project)
    door.require_closed()
    queue_id = append(door, sent, None)
    assert pull(door, queue_id, len(sent)) == sent
    if container_of(project, "etcd-1"):
        require_failover(project, sent, queue_id)
        return
    on_cluster = bool(container_of(project, CLUSTER[0]))
    for service in (*SERVICES, *CLUSTER) if on_cluster else SERVICES:
        restart(project, service)
        if on_cluster and service == "indexer":  # before that, the first worker may have all of them
            require_tasks_in_workers(project)
        append(door, sent, queue_id)
        assert pull(door, queue_id, len(sent)) == sent, f"after the restart of {service}"
        print(f"{service} restarted: {len(sent)} messages equal")
    if container_of(project, "prometheus"):
        require_all_scraped(door)
    if not door.is_guarded:  # the token of the test has no right to the store's status
        require_status_of_command(project)


def require_failover(project: str, sent: list[str], queue_id: int) -> None:
    """Kill the writer: another member must take over, all must show everything, and the killed one must return."""
    lost = group_of(project)["writer"]
    writer, *_ = MEMBERS[lost]
    container = container_of(project, writer)
    docker("kill", container)
    doors = {name: Door(project, service, port) for name, (_, service, port) in MEMBERS.items()}
    door = next(door for name, door in doors.items() if name != lost)
    append(door, sent, queue_id)
    for name, each in doors.items():
        if name != lost:
            assert pull(each, queue_id, len(sent)) == sent, f"member {name}"
    docker("start", container)
    deadline = time.monotonic() + DEADLINE_S
    while (group := group_of(project))["in_sync"] < len(MEMBERS):
        assert time.monotonic() < deadline, group
        time.sleep(0.5)
    assert pull(doors[lost], queue_id, len(sent)) == sent
    print(f"writer {lost} killed: {group['writer']} has gone on, {len(sent)} messages equal on all members")


def group_of(project: str) -> Any:
    """Return the status of the group, which knows no writer for a while after a loss."""
    command = ("tidemark", "group", "status", "--output", "json")
    return json.loads(docker("exec", container_of(project, "query-b"), *command, check=False))


class Door:
    """A query service of a running stack: over TLS, and with a token, if the stack requires them."""

    def __init__(self, project: str, service: str = "query", port: int = 8080) -> None:
        query = container_of(project, service)
        environment = docker("inspect", "--format", '{{join .Config.Env "\\n"}}', query).splitlines()
        self.is_tls = any(line.startswith("TIDEMARK_TLS_CERT=/") for line in environment)
        self.is_guarded = any(line.startswith("TIDEMARK_ACCESS_FILE=/") for line in environment)
        ca = docker("exec", query, "cat", "/tls/ca.pem") if self.is_tls else None
        self.context = ssl.create_default_context(cadata=ca) if ca else None
        self.url = f"{'https' if self.is_tls else 'http'}://127.0.0.1:{port}"

    def require_closed(self) -> None:
        """Require that a request without TLS, or without a token, is refused if the stack requires them."""
        if self.is_guarded:
            assert self.status_of(self.url + "/v1/topics") == 401
            print("without a token: 401")
        if self.is_tls:
            assert self.status_of("http://127.0.0.1:8080/healthz") is None
            print("without TLS: no answer")

    def status_of(self, url: str) -> int | None:
        """Return the status of a GET without a token; None without an HTTP response."""
        try:
            with urllib.request.urlopen(url, timeout=30, context=self.context) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of each request."""
        return {"Authorization": f"Bearer {TOKEN}"} if self.is_guarded else {}


def append(door: Door, sent: list[str], queue_id: int | None) -> int:
    """Append one batch to *queue_id* (None: the writer chooses), add it to *sent*, and return its queue."""
    bodies = [f"message {len(sent) + n}" for n in range(BATCH)]
    messages = [{"body": body, "body_encoding": "utf8", "tag": "A", "keys": ["k1"]} for body in bodies]
    request = {"messages": messages} if queue_id is None else {"messages": messages, "queue_id": queue_id}
    answer = call(door, f"{door.url}{TOPIC}/messages", request, request_id=f"compose-test-{len(sent)}-{time.time_ns()}")
    sent += bodies
    return int(answer["queue_id"])


def pull(door: Door, queue_id: int, count: int) -> list[str]:
    """Wait for the queue's first *count* messages, and return their bodies."""
    bodies: list[str] = []
    next_offset, deadline = 0, time.monotonic() + DEADLINE_S
    while len(bodies) < count:
        if time.monotonic() > deadline:
            raise AssertionError(f"{len(bodies)} of {count} messages after {DEADLINE_S} s")
        path = f"{TOPIC}/queues/{queue_id}/messages?offset={next_offset}&wait_ms=5000&body_encoding=utf8"
        answer = call(door, door.url + path)
        offsets = [message["queue_offset"] for message in answer["messages"]]
        assert offsets == list(range(next_offset, next_offset + len(offsets))), f"not dense: {offsets}"
        bodies += [message["body"] for message in answer["messages"]]
        next_offset = answer["next_offset"]
    return bodies


def call(door: Door, url: str, body: dict[str, Any] | None = None, *, request_id: str = "") -> Any:
    """GET, or POST *body*, until the service answers: a request id makes a repeated POST harmless."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Idempotency-Key": request_id} if data else {}
    headers |= door.headers
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            with urllib.request.urlopen(
                urllib.request.Request(url, data, headers), timeout=30, context=door.context
            ) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            if error.code not in UNAVAILABLE or time.monotonic() > deadline:
                raise AssertionError(f"{url}: {error.code} {error.read().decode(errors='replace')}") from error
        except OSError:  # refused, reset or timed out while a service starts
            if time.monotonic() > deadline:
                raise
        time.sleep(0.5)


def require_tasks_in_workers(project: str) -> None:
    """Require that the pipeline has slots of both workers."""
    deadline = time.monotonic() + DEADLINE_S
    master = container_of(project, "spark-master")
    while True:
        status = json.loads(docker("exec", master, "python", "-c", ASK_MASTER))
        used = [worker["coresused"] for worker in status["workers"]]
        if len(used) == 2 and all(used) and any(app["state"] == "RUNNING" for app in status["activeapps"]):
            break
        assert time.monotonic() < deadline, status
        time.sleep(0.5)
    print(f"slots that the pipeline has of the workers: {used}")


def require_all_scraped(door: Door) -> None:
    """Require that Prometheus gets the metrics of each service."""
    deadline = time.monotonic() + DEADLINE_S
    wanted = {f"tidemark-{service}": "1" for service in ("writer", "pipeline", "query")}
    while True:
        seen = {one["metric"]["job"]: one["value"][1] for one in call(door, UP)["data"]["result"]}
        if seen == wanted:
            break
        assert time.monotonic() < deadline, seen
        time.sleep(0.5)
    print(f"scraped: {', '.join(seen)}")


def require_status_of_command(project: str) -> None:
    """Require that the command in the query service's image reports a healthy store."""
    status = docker("exec", container_of(project, "query"), "tidemark", "status", "--output", "json")
    assert json.loads(status)["problems"] == [], status
    print("tidemark status: no problems")


def container_of(project: str, service: str) -> str:
    """Return the id of a service's container; empty if it does not run."""
    labels = (f"com.docker.compose.project={project}", f"com.docker.compose.service={service}")
    return docker("ps", "--quiet", *(f"--filter=label={label}" for label in labels)).strip()


def restart(project: str, service: str) -> None:
    """Stop with SIGTERM, which the service must obey, start it, and wait until it is healthy."""
    container = container_of(project, service)
    docker("stop", "-t", "60", container)
    state = docker("inspect", "--format", "{{.State.ExitCode}}", container).strip()
    assert int(state) != KILLED, f"{service} ignored SIGTERM"
    docker("start", container)
    deadline = time.monotonic() + DEADLINE_S
    while docker("inspect", "--format", "{{.State.Health.Status}}", container).strip() != "healthy":
        assert time.monotonic() < deadline, f"{service} is not healthy {DEADLINE_S} s after its restart"
        time.sleep(0.5)


def engine_answers() -> bool:
    """Return True if a Docker engine and its compose plugin are available."""
    try:
        docker("info")
        docker("compose", "version")
    except (FileNotFoundError, subprocess.CalledProcessError):
        return False
    return True


def docker(*arguments: str, check: bool = True) -> str:
    """Return the standard output of one docker command; print it too for a compose command with effects."""
    quiet = arguments[0] != "compose" or arguments[-1] == "version"
    stderr = subprocess.DEVNULL if quiet else None
    done = subprocess.run(
        ("docker", *arguments), cwd=ROOT, check=check, stdout=subprocess.PIPE, stderr=stderr, text=True
    )
    if not quiet:
        print(done.stdout, end="", flush=True)
    return done.stdout


if __name__ == "__main__":
    if len(sys.argv) > 1:
        check_stack(sys.argv[1])
    else:
        main()
