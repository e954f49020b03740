"""A store in which all foreign text tries to inject markup or code."""

from __future__ import annotations

import json
from pathlib import Path

from tests.built_store import BuiltStore

TOPIC = "hostile"
MARKUP = '<img src=x onerror="alert(1)">'
SCRIPT = "</script><script>alert(2)</script>"
LINK = "javascript:alert(3)"
BIDI = "user\u202egnp.exe\u2066\u200b\u0000end"
QUOTES = "'; touch pwned; echo '\"$(touch pwned)`touch pwned`\\"
TEMPLATE = "{{constructor.constructor('alert(4)')()}}"
TEXTS = (MARKUP, SCRIPT, LINK, BIDI, QUOTES, TEMPLATE)
BODIES = (
    *(text.encode() for text in TEXTS),
    json.dumps({MARKUP: [SCRIPT, LINK, BIDI, {"__proto__": {"polluted": True}}]}).encode(),
    b"\xff\xfe\x00\x80\xed\xa0\x80not UTF-8",
    b"\x00" * 64,
    b"long " * 200_000,
    b'"' + b"long " * 200_000 + b'"',
    b"[" * 20_000 + b"]" * 20_000,
    b"18446744073709551617",
)


def hostile_store(root: Path) -> BuiltStore:
    """Write hostile bodies, keys, tags, properties, groups and ledger entries."""
    store = BuiltStore(root, log_file_size=4 << 20)
    store.topic(TOPIC)
    for number, body in enumerate(BODIES):
        text = TEXTS[number % len(TEXTS)].replace(" ", "\u00a0")  # a space would end the key
        store.append(TOPIC, body, {"TAGS": text, "KEYS": f"{text} k{number}", text: text, "__proto__": text})
    store.publish()
    offsets = {f"{TOPIC}@{text}": {0: 1} for text in (MARKUP, SCRIPT, LINK, QUOTES)}
    path = root / "config" / "consumerOffset.json"
    path.write_text(json.dumps({"offsetTable": offsets}))
    damage = [
        {
            "physical_offset": number,
            "size": 100,
            "reason": text,
            "topic": text,
            "queue_id": 0,
            "queue_offset": number,
            "found_ms": 1_700_000_000_000,
        }
        for number, text in enumerate(TEXTS)
    ]
    ledger = root / "tidemark" / "indexer" / "ledger-0.jsonl"
    ledger.write_text("".join(json.dumps(one) + "\n" for one in damage))
    return store
