"""The audit log's destinations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidemark.access.audit import Audit, Deed, audit_handler

DEED = Deed("orders", "10.0.0.1", "CreateTopic", "Create Topic:t", "OK")


def test_a_rotated_audit_file_is_created_again(tmp_path: Path) -> None:
    """logrotate moves the file without sending a signal."""
    path = tmp_path / "audit.log"
    audit = Audit(audit_handler(path), service="writer", repeat_ms=1_000)
    audit.note_change(DEED)
    path.rename(tmp_path / "audit.log.1")
    audit.note_change(DEED)
    audit.close()
    lines = [json.loads((tmp_path / name).read_text()) for name in ("audit.log.1", "audit.log")]
    for line in lines:
        assert line.pop("timestamp").endswith("+00:00")
        assert line == {"event": "audit", "service": "writer", **DEED._asdict(), "count": 1}


def test_a_hostile_name_stays_on_its_audit_line(tmp_path: Path) -> None:
    """A name cannot forge another line."""
    path = tmp_path / "audit.log"
    audit = Audit(audit_handler(path), service="writer", repeat_ms=1_000)
    audit.note(DEED._replace(resource='Create Topic:a\n{"event":'))
    audit.close()
    (line,) = path.read_text().splitlines()
    assert json.loads(line)["resource"] == 'Create Topic:a\n{"event":'


def test_an_unwritable_audit_file_is_reported_at_the_start(tmp_path: Path) -> None:
    """The error comes at the start, not at the first audited action."""
    with pytest.raises(OSError, match="No such file"):
        audit_handler(tmp_path / "absent" / "audit.log")
