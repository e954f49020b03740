# Every command runs from .venv, which `make sync` builds from requirements.lock; any other target does so first when it has to.
PYTHON ?= python3
BIN := .venv/bin
RUNS := .venv/.runs# what the product and its demo need
SYNCED := .venv/.synced# and the project's tools
PIP := $(BIN)/python -m pip --disable-pip-version-check
CODE := tidemark pyspark_tidemark services tests benchmarks demo examples scripts
CLIENTS := benchmarks/peers/python/requirements# the other Python clients of `make bench-peers`, in an environment of their own
ALONE := unit property# start no services: several at once
TOGETHER := integration replication crash conformance fuzz# start services, and wait for them: three files at once, each file's tests in their order

.DEFAULT_GOAL := help
.PHONY: help sync lock proto docs site wheel extension format lint types test integration crash conformance spark-versions floors-test cluster-test rolling-test clients-test metrics-test console-test pictures deploy-test kubernetes-test replication-model replication-test replication-soak soak soak-mutations power-test fuzz security-test supply-chain peer check up down demo examples bench bench-peers bench-spark bench-check scale scale-measure profile compose-test clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

sync: $(SYNCED)  ## make .venv from requirements.lock; get Java 17 where none fits
$(SYNCED): $(RUNS) proto/requirements.lock
	$(BIN)/python -m scripts.install all dev
	$(PIP) install --quiet --require-hashes --no-deps --only-binary :all: --upgrade --target .venv/protoc -r proto/requirements.lock
	touch $@
$(RUNS): requirements.lock pyproject.toml | $(BIN)/python
	scripts/java.sh
	$(BIN)/python -m scripts.install all demo
	$(PIP) install --quiet --no-build-isolation --no-deps -e .
	$(BIN)/python -m scripts.warm
	touch $@
$(BIN)/uv:
	$(MAKE) sync
$(BIN)/python:
	scripts/venv.sh $(PYTHON) .venv

# --no-emit-*, --no-header: no address and no path of the machine that compiled it gets into the file.
COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --quiet
lock: $(BIN)/uv  ## compile requirements.lock again from pyproject.toml, and the locks of protoc and of the benchmarks' other clients (keeps versions that still fit)
	$(COMPILE) pyproject.toml --extra all --group dev --output-file requirements.lock
	$(COMPILE) proto/requirements.in --no-deps --output-file proto/requirements.lock
	$(COMPILE) $(CLIENTS).in --output-file $(CLIENTS).lock

proto: $(SYNCED)  ## write tidemark/v1 again from proto/ (Python 3.11 or 3.12)
	$(BIN)/python -m scripts.stubs .

docs: $(SYNCED)  ## write the generated parts of docs/ again
	$(BIN)/python -m scripts.settings_table
	$(BIN)/python -m scripts.metrics_table
	$(BIN)/python -m scripts.dashboard
	$(BIN)/python -m scripts.prometheus_rule
	$(BIN)/python -m scripts.spark_options_table
	$(BIN)/python -m scripts.conformance_table
	$(BIN)/python -m scripts.known_failures_table
	$(BIN)/python -m scripts.performance_table
	$(BIN)/python -m scripts.scale_tables
	$(BIN)/python -m scripts.cli_reference
	$(BIN)/python -m scripts.licences
	$(BIN)/python -m scripts.threats_list

site: $(SYNCED)  ## the pages of docs/, and the API from its docstrings, as a web site in build/site
	$(BIN)/mkdocs build --strict --quiet

wheel: $(SYNCED)  ## what is published, in dist/: for this platform, with compiled loops, where compilers of C and C++ are
	$(BIN)/hatchling build -t wheel

extension: $(SYNCED)  ## the compiled loops without numba, in build/extension: PYTHONPATH=build/extension tries them (needs compilers of C and C++)
	$(BIN)/python -m scripts.extension build/extension

format: $(SYNCED)  ## format, and fix what ruff can fix
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

lint: $(SYNCED)  ## ruff, formatting, import contracts and circles, links, plain English
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports
	$(BIN)/python -m scripts.import_cycles && $(BIN)/python -m scripts.check_links && $(BIN)/python -m scripts.plain_english

types: $(SYNCED)  ## mypy, strict; beside the tests it uses the time in which they wait
	nice $(BIN)/mypy $(CODE)

test: $(SYNCED)  ## every quick suite: unit, property, integration, crash, conformance; a few examples of each fuzz target
	$(BIN)/pytest --numprocesses auto --maxprocesses 4 $(ALONE:%=tests/%)
	$(BIN)/pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder $(TOGETHER:%=tests/%)

# -m "": the exhaustive tests, too, which `make test` leaves out.
integration crash conformance: $(SYNCED)
	$(BIN)/pytest -m "" tests/$@
conformance: export CONFORMANCE_BROKERS ?= 5.3.3,5.5.1# versions of the real broker
conformance: peer
peer:
	scripts/peer.sh
integration:  ## real gRPC, Spark and HTTP
crash:  ## kill, cut and fail between any two steps: exhaustively
conformance:  ## bytes and vectors that other code made, and a real broker on the same directory

spark-versions: $(SYNCED)  ## format("tidemark") on Spark 4.0, 4.1 and 4.2 from PyPI
	$(BIN)/python -m tests.spark_versions.run
floors-test: $(SYNCED)  ## clients and a round trip with the lowest versions that pyproject.toml allows, and with the newest (FLOORS=lowest, newest: one of them); FLOORS_PYTHON picks their Python
	$(BIN)/python -m tests.floors.run
cluster-test: $(SYNCED)  ## the pipeline on a Spark standalone cluster whose workers, driver and master are killed under load
	$(BIN)/pytest -m "" tests/cluster
rolling-test: $(SYNCED)  ## restart each service in order under load: no program that sends or reads may notice
	$(BIN)/pytest -m "" tests/rolling
clients-test: $(SYNCED) peer  ## RocketMQ's classic clients (Java, Go) with a real broker and with Tidemark: equal observations (needs go)
	$(BIN)/pytest -m "" tests/clients
metrics-test: $(SYNCED)  ## promtool on what each service serves and on the alert rules; every panel of the dashboard in a real Prometheus
	$(BIN)/pytest tests/metrics
console-test: $(SYNCED)  ## the console of the query service in a real browser: hostile messages, keys, axe-core, every page
	scripts/chromium.sh
	$(BIN)/pytest tests/console
pictures: $(SYNCED)  ## take the pictures of docs/ again: console and dashboard of real stacks, by a real browser and a real Prometheus
	scripts/chromium.sh
	$(BIN)/python -m scripts.pictures
	$(BIN)/python -m scripts.dashboard_picture
deploy-test: $(SYNCED)  ## systemd itself on the units of deploy/ (needs systemd-analyze)
	$(BIN)/pytest tests/deploy/test_systemd.py
kubernetes-test: $(SYNCED)  ## kubectl and Kubernetes' schemas on the manifests of deploy/ (needs kubectl)
	$(BIN)/pytest tests/deploy/test_kubernetes.py
soak: $(SYNCED)  ## load and kill the real services for SOAK_SECONDS (180), and judge what clients saw, RocketMQ's Java client too (SOAK_JAVA=off: not); SOAK_SEED repeats choices
	$(BIN)/python -m tests.soak
power-test: $(SYNCED)  ## cut the power of file systems under the real services, POWER_CYCLES (20) times each; POWER_SEED repeats choices
	scripts/filesystems.sh
	$(BIN)/python -m tests.power
replication-model: $(SYNCED)  ## thousands of random schedules for the state machines of replication (minutes)
	REPLICATION_SEEDS=$${REPLICATION_SEEDS:-3000} $(BIN)/pytest tests/unit/replication/test_model.py
# NEMESIS_SEEDS=3,17 repeats runs with random faults, each of NEMESIS_SECONDS; FAILOVERS is how often the writer of two programs is lost.
NEMESIS_SEEDS ?= 1,2,3,4,5,6,7,8,9,10
replication-test: $(SYNCED)  ## groups of real members under faults, an etcd, four kinds of clients: nothing acknowledged is lost, logs byte-identical
	NEMESIS_SEEDS=$(NEMESIS_SEEDS) $(BIN)/pytest -m "" -n 2 --dist load tests/replication
replication-soak: $(SYNCED)  ## the same with 20 failovers, and random faults for NEMESIS_SECONDS (600) of each seed
	FAILOVERS=20 NEMESIS_SEEDS=$(NEMESIS_SEEDS) NEMESIS_SECONDS=$${NEMESIS_SECONDS:-600} $(BIN)/pytest -m "" tests/replication/test_nemesis.py tests/replication/test_clients_follow.py tests/replication/test_spark_follows.py
soak-mutations: $(SYNCED)  ## put faults into the consumers of a soak, and require that its judge notices each
	$(BIN)/python -m tests.soak.mutations

# FUZZ_SEED repeats a run; FUZZ_TARGETS=tests/fuzz/test_records.py picks. Without FUZZ_SECONDS pytest looks at a few examples of each.
FUZZ_SECONDS ?= 240
FUZZ_TARGETS ?= tests/fuzz
fuzz: $(SYNCED)  ## hostile bytes, files, requests, settings for FUZZ_SECONDS (240); FUZZ_SEED repeats a run
	FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_SEED=$(FUZZ_SEED) $(BIN)/pytest $(FUZZ_TARGETS)

security-test: $(SYNCED)  ## who may do what, TLS, 10,000 idle connections, slow and greedy clients, bombs and 100,000 names: real services
	$(BIN)/pytest tests/security tests/unit/access tests/integration/access tests/integration/tls tests/integration/test_path_tricks.py

# SUPPLY_CHAIN=--strict fails where the advisories cannot be reached.
supply-chain: $(SYNCED)  ## an SBOM of the lock in build/, licences, and known faults where the advisories can be reached
	$(BIN)/python -m scripts.supply_chain $(SUPPLY_CHAIN)

check: lint types test  ## lint, types and every quick suite

up: ## start writer, indexer and query in containers
	docker compose up --build --detach --wait
down: ## stop them; the store's volumes stay
	docker compose down

demo: $(RUNS)  ## 336,776 real flights through the real services, and back
	$(BIN)/python -m demo
examples: $(SYNCED)  ## each program of examples/, against services of its own
	$(BIN)/python -m examples
bench: $(SYNCED)  ## the figures, as a table, JSON and a page with plots; BENCH=name[,name] picks, BENCH_SCALE shortens
	$(BIN)/python -m benchmarks run
bench-peers: $(SYNCED) peer  ## ours beside a real RocketMQ and a real Kafka, and beside other Python clients (BENCH=python), in turn: ratios and goals (BENCH picks rows)
	scripts/redis.sh
	$(BIN)/python -m benchmarks.peers
bench-spark: $(SYNCED) peer  ## format("tidemark") beside Spark's own Kafka source, in turn on the same cores: ratios
	BENCH=spark $(BIN)/python -m benchmarks.peers
bench-check: $(SYNCED)  ## the quick ones against the committed figures, the machine's own speed taken out
	$(BIN)/python -m benchmarks check
scale: $(SYNCED)  ## write the tables of docs/scale.md again from the model and its measured constants
	$(BIN)/python -m scripts.scale_tables
scale-measure: $(SYNCED)  ## measure the constants of that model on this machine, and check it; then `make scale`
	$(BIN)/python -m benchmarks.scale measure
profile: $(SYNCED)  ## flame graphs of one benchmark: ROW=name; PROCESS=writer,worker,query,client picks
	$(BIN)/python -m benchmarks profile $(ROW)
# COMPOSE_UP: a command that brings the stack up, runs what stands behind its `--`, and takes it down, for a machine on
# which `docker compose up` alone cannot (one without bridges).
COMPOSE_UP ?= $(wildcard ../shared/containers/compose-up-test)
COMPOSE_TEST = $(PYTHON) tests/compose/run.py $(notdir $(COMPOSE_UP))
ON_CLUSTER := COMPOSE_PROFILES=cluster,observability TIDEMARK_SPARK_MASTER=spark://spark-master:7077 TIDEMARK_SHARDS=2
WITH_TLS := COMPOSE_PROFILES=tls STACK_TLS=on STACK_ACCESS=./tests/compose/access
compose-test:  ## up, append, pull, compare, restart, down; then with Spark's tasks on a cluster and a Prometheus; then over TLS; then a group that loses its writer (needs a Docker engine)
	$(if $(COMPOSE_UP),$(COMPOSE_UP) --) $(COMPOSE_TEST)
	$(if $(COMPOSE_UP),$(ON_CLUSTER) $(COMPOSE_UP) -- $(COMPOSE_TEST))
	$(if $(COMPOSE_UP),$(WITH_TLS) $(COMPOSE_UP) -- $(COMPOSE_TEST))
	$(if $(COMPOSE_UP),COMPOSE_PROFILES=replicated $(COMPOSE_UP) -- $(COMPOSE_TEST))

clean:  ## remove .venv and what tools left behind
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist examples/node/node_modules
	find $(wildcard $(CODE)) -name __pycache__ -prune -exec rm -rf {} +
