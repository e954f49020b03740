# Three images from one file: writer, indexer (with Spark and Java), query (with neither). A fourth has Prometheus, for
# who wants to look at them.
# docker compose builds them; by hand: docker build --target query .

FROM python:3.11-slim-bookworm AS base
# The store's folders exist in the image, owned by the service user: a new named volume takes content and owner from
# its mount point, and a volume inside a read-only one finds its mount point there (docker-compose.yml).
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin tidemark \
    && install -d -o tidemark -g tidemark \
        /data /data/store /data/store/config /data/store/commitlog /data/store/consumequeue \
        /data/store/batchconsumequeue /data/store/index /data/store/tidemark \
        /data/store/tidemark/writer /data/store/tidemark/indexer /data/store/tidemark/query \
        /tls
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    TIDEMARK_STORE_ROOT=/data/store
WORKDIR /app

# Packages: per image the part of requirements.lock that its extra needs, hashes checked; without pip, and without numba,
# because the loops come compiled.
FROM base AS packages
RUN python -m venv --without-pip /opt/venv
COPY pyproject.toml requirements.lock ./
COPY scripts/lock_for.py scripts/
ENV PIP_DISABLE_PIP_VERSION_CHECK=1

FROM packages AS writer-packages
RUN python scripts/lock_for.py writer --without numba > writer.lock \
    && /usr/local/bin/pip --python /opt/venv/bin/python install --no-cache-dir --require-hashes -r writer.lock

FROM packages AS indexer-packages
RUN python scripts/lock_for.py indexer --without numba > indexer.lock \
    && /usr/local/bin/pip --python /opt/venv/bin/python install --no-cache-dir --require-hashes -r indexer.lock

FROM packages AS query-packages
RUN python scripts/lock_for.py query --without numba > query.lock \
    && /usr/local/bin/pip --python /opt/venv/bin/python install --no-cache-dir --require-hashes -r query.lock

# The loops, for any processor of this architecture. Python's headers: there in the official images, else Debian's.
FROM packages AS loops
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ libc6-dev \
    && { [ -e "$(python -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ] \
         || apt-get install -y --no-install-recommends libpython3.11-dev; } \
    && rm -rf /var/lib/apt/lists/*
RUN python scripts/lock_for.py writer query build > build.lock \
    && /usr/local/bin/pip --python /opt/venv/bin/python install --no-cache-dir --require-hashes -r build.lock
COPY scripts scripts
COPY tidemark tidemark
COPY services services
RUN python -m scripts.extension /loops

FROM base AS writer
COPY --from=writer-packages /opt/venv /opt/venv
COPY --from=loops /loops /opt/venv/lib/python3.11/site-packages
COPY tidemark tidemark
COPY services services
USER tidemark
EXPOSE 8081 10911
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --start-interval=2s CMD ["python", "-I", "-S", "tidemark/healthcheck.py", "writer"]
CMD ["python", "-m", "services.writer"]

FROM base AS indexer
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*
COPY --from=indexer-packages /opt/venv /opt/venv
COPY --from=loops /loops /opt/venv/lib/python3.11/site-packages
COPY tidemark tidemark
COPY services services
USER tidemark
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --start-interval=2s CMD ["python", "-I", "-S", "tidemark/healthcheck.py", "pipeline"]
CMD ["python", "-m", "services.indexer", "pipeline"]

FROM base AS query
COPY --from=query-packages /opt/venv /opt/venv
COPY --from=loops /loops /opt/venv/lib/python3.11/site-packages
COPY tidemark tidemark
COPY services services
USER tidemark
EXPOSE 8080 10912
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --start-interval=2s CMD ["python", "-I", "-S", "tidemark/healthcheck.py", "query"]
CMD ["python", "-m", "services.indexer", "query"]

# For the profile `tls` of docker-compose.yml.
FROM base AS certificates
RUN apt-get update && apt-get install -y --no-install-recommends openssl && rm -rf /var/lib/apt/lists/*
COPY deploy/compose/certificates.sh ./
USER tidemark
CMD ["./certificates.sh", "/tls"]

FROM debian:bookworm-slim AS prometheus
RUN apt-get update \
    && apt-get install -y --no-install-recommends prometheus \
    && rm -rf /var/lib/apt/lists/* \
    && install -d -o prometheus /data
COPY deploy/prometheus /etc/tidemark
USER prometheus
EXPOSE 9090
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s CMD ["promtool", "query", "instant", "http://127.0.0.1:9090", "up"]
CMD ["prometheus", "--config.file=/etc/tidemark/prometheus.yml", "--storage.tsdb.path=/data"]
