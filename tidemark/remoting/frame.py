"""One request or answer as a value, and the two ways to make one."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemark.remoting.codes import VERSION, Language, Serialization

Buffer = bytes | bytearray | memoryview

REQUEST, ANSWER, ONE_WAY = 0, 1, 2  # values of Frame.flag; ANSWER and ONE_WAY are bits


@dataclass(slots=True, repr=False)
class Frame:
    """One request or answer. A slotted class is built and read faster than a NamedTuple of nine fields."""

    code: int
    flag: int
    opaque: int
    language: Language
    version: int
    remark: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    body: Buffer = b""
    serialization: Serialization = Serialization.JSON

    @property
    def is_answer(self) -> bool:
        return self.flag & ANSWER != 0

    @property
    def is_one_way(self) -> bool:
        return self.flag & ONE_WAY != 0

    def __repr__(self) -> str:
        """Name the fields, but not their values: credentials are among them."""
        return (
            f"Frame(code={self.code}, flag={self.flag}, opaque={self.opaque}, language={self.language!r}, "
            f"version={self.version}, remark={self.remark!r}, fields of {sorted(self.fields)}, "
            f"body of {len(self.body)} bytes, {self.serialization.name})"
        )


def request(
    code: int,
    fields: dict[str, str] | None = None,
    body: Buffer = b"",
    *,
    opaque: int,
    one_way: bool = False,
    language: Language = Language.PYTHON,
) -> Frame:
    """Return a request; the receiver does not answer it if it is *one_way*."""
    return Frame(code, ONE_WAY if one_way else REQUEST, opaque, language, VERSION, "", fields or {}, body)


def answer_to(
    asked: Frame, code: int, remark: str = "", fields: dict[str, str] | None = None, body: Buffer = b""
) -> Frame:
    """Return the answer to *asked*, which must not be a one-way request. It is in JSON, whatever *asked* is in."""
    if asked.flag & ONE_WAY:
        raise ValueError(f"request {asked.code} is one way: it has no answer")
    # JAVA is the language of the broker's answers, with which the clients were tried.
    return Frame(code, ANSWER, asked.opaque, Language.JAVA, VERSION, remark, fields or {}, body)
