"""What the processes of `service_process` share: the modules of the services, and their compiled loops."""

from __future__ import annotations

import services.indexer.pipeline.__main__
import services.indexer.query.__main__
import services.writer.door
from services.writer.batch.record_encoder import warm_up as writing
from tidemark.index.warm_up import warm_up as indexing
from tidemark.read.warm_up import warm_up as reading

SERVICES = (services.indexer.pipeline.__main__, services.indexer.query.__main__, services.writer.door)

for warm_up in (writing, indexing, reading):
    warm_up()
