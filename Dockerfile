# Three images from one file: writer, indexer (with Spark and Java), query (with neither). Three more are for profiles of
# docker-compose.yml: certificates, etcd and prometheus.
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
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    TIDEMARK_STORE_ROOT=/data/store
WORKDIR /app
# An environment without pip. The code is in /app; `docker compose exec query tidemark status` runs the command.
RUN python -m venv --without-pip /opt/venv \
    && echo /app > /opt/venv/lib/python3.11/site-packages/app.pth \
    && printf '#!/bin/sh\nexec python -m tidemark.cli "$@"\n' > /opt/venv/bin/tidemark \
    && chmod 755 /opt/venv/bin/tidemark

# Packages: a layer with those of all three images, one more for the two that read tables, and one for each image. Each
# is a part of requirements.lock, hashes checked; without numba, because the loops come compiled.
FROM base AS packages
COPY pyproject.toml requirements.lock /lock/
COPY scripts/lock_for.py /lock/scripts/
RUN for parts in "service client" table writer indexer query; do \
        python /lock/scripts/lock_for.py $parts --without numba > "/lock/${parts%% *}.lock" || exit 1; \
    done \
    && python /lock/scripts/lock_for.py writer query build > /lock/loops.lock

FROM base AS common
RUN --mount=from=packages,source=/lock/service.lock,target=/tmp/service.lock --mount=type=cache,target=/root/.cache/pip \
    /usr/local/bin/pip --python /opt/venv/bin/python install --require-hashes -r /tmp/service.lock

FROM common AS tables
RUN --mount=from=packages,source=/lock/table.lock,target=/tmp/table.lock --mount=type=cache,target=/root/.cache/pip \
    /usr/local/bin/pip --python /opt/venv/bin/python install --require-hashes -r /tmp/table.lock

# The loops, for any processor of this architecture. Python's headers: there in the official images, else Debian's.
FROM common AS loops
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ libc6-dev \
    && { [ -e "$(python -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ] \
         || apt-get install -y --no-install-recommends libpython3.11-dev; } \
    && rm -rf /var/lib/apt/lists/*
RUN --mount=from=packages,source=/lock/loops.lock,target=/tmp/loops.lock --mount=type=cache,target=/root/.cache/pip \
    /usr/local/bin/pip --python /opt/venv/bin/python install --require-hashes -r /tmp/loops.lock
COPY scripts scripts
COPY tidemark tidemark
COPY services services
RUN python -m scripts.extension /loops

FROM common AS writer
RUN --mount=from=packages,source=/lock/writer.lock,target=/tmp/writer.lock --mount=type=cache,target=/root/.cache/pip \
    /usr/local/bin/pip --python /opt/venv/bin/python install --require-hashes -r /tmp/writer.lock
COPY --from=loops /loops /opt/venv/lib/python3.11/site-packages
COPY tidemark tidemark
COPY services services
USER tidemark
EXPOSE 8081 10911
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --start-interval=2s CMD ["python", "-I", "-S", "tidemark/healthcheck.py", "writer"]
CMD ["python", "-m", "services.writer"]

FROM tables AS indexer
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*
RUN --mount=from=packages,source=/lock/indexer.lock,target=/tmp/indexer.lock --mount=type=cache,target=/root/.cache/pip \
    /usr/local/bin/pip --python /opt/venv/bin/python install --require-hashes -r /tmp/indexer.lock
COPY --from=loops /loops /opt/venv/lib/python3.11/site-packages
COPY tidemark tidemark
COPY services services
USER tidemark
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --start-interval=2s CMD ["python", "-I", "-S", "tidemark/healthcheck.py", "pipeline"]
CMD ["python", "-m", "services.indexer", "pipeline"]

FROM tables AS query
RUN --mount=from=packages,source=/lock/query.lock,target=/tmp/query.lock --mount=type=cache,target=/root/.cache/pip \
    /usr/local/bin/pip --python /opt/venv/bin/python install --require-hashes -r /tmp/query.lock
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

FROM debian:bookworm-slim AS etcd
RUN apt-get update \
    && apt-get install -y --no-install-recommends etcd-server etcd-client \
    && rm -rf /var/lib/apt/lists/* \
    && install -d -o etcd -g etcd -m 700 /data
ENV ETCDCTL_API=3
USER etcd
EXPOSE 2379 2380
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s --start-interval=1s CMD etcdctl --endpoints "$ETCD_ADVERTISE_CLIENT_URLS" endpoint health
CMD ["etcd"]

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
