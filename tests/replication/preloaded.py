"""What the processes of `service_process` share: the modules of the services, and their compiled loops."""

from __future__ import annotations

from services.indexer.pipeline import follow
from services.indexer.query import server
from services.writer import door
from services.writer.batch.record_encoder import warm_up as writing
from tidemark.index.warm_up import warm_up as indexing
from tidemark.read.warm_up import warm_up as reading

SERVICES = (door, follow, server)

for warm_up in (writing, indexing, reading):
    warm_up()
