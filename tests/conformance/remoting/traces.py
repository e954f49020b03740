"""The captured exchanges, as headers and bodies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent / "traces"
LINES = ("java-5.3.3.jsonl", "go-v2.1.3.jsonl", "raw.jsonl", "from-server.jsonl")
RAW_LANGUAGE, RAW_VERSION = "PYTHON", 479  # the file of the hand-made requests does not have them


class Exchange(NamedTuple):
    """A request and its answer. Bodies are None unless they are JSON."""

    name: str
    request: dict[str, Any]
    body: bytes | None
    answer: dict[str, Any] | None
    answer_body: bytes | None

    @property
    def code(self) -> int:
        return int(self.request["code"])

    @property
    def fields(self) -> dict[str, str]:
        """The request's fields as texts."""
        return {name: str(value) for name, value in self.request.get("extFields", {}).items()}

    @property
    def answer_code(self) -> int | None:
        return int(self.answer["code"]) if self.answer else None

    @property
    def answer_fields(self) -> dict[str, str]:
        return dict((self.answer or {}).get("extFields", {}))


def exchanges() -> Iterator[Exchange]:
    """Yield every line of the files."""
    for file in LINES:
        for number, line in enumerate((FOLDER / file).read_text().splitlines(), 1):
            found = json.loads(line)
            request = found.get("request") or found["request_from_server"]
            answer = found.get("answer") if isinstance(found.get("answer"), dict) else None
            if file == "raw.jsonl":
                assert answer is not None
                filled = {"flag": 0, "language": RAW_LANGUAGE, "version": RAW_VERSION, "opaque": answer["opaque"]}
                header = {"code": request["code"], "extFields": request["extFields"], **filled}
                yield Exchange(
                    f"{file}:{number} {found['what']}", header, _json(request["body"]), answer, _json(found["body"])
                )
            else:
                body, answer_body = found.get("body") or {}, found.get("answer_body") or {}
                yield Exchange(
                    f"{file}:{number}", request, _json(body.get("text")), answer, _json(answer_body.get("text"))
                )


def _json(text: str | None) -> bytes | None:
    return text.encode() if text and text.startswith("{") else None
