"""Parser of DDL strings such as `carrier string, delay int`.

Spark's own parser needs the JVM, which a data source lacks. The supported types exist in JSON and are read by Arrow.
"""

from __future__ import annotations

import re

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(\w+)|([<>(),:]))")
_PLAIN: dict[str, type[DataType]] = {
    "boolean": BooleanType,
    "byte": ByteType,
    "tinyint": ByteType,
    "short": ShortType,
    "smallint": ShortType,
    "int": IntegerType,
    "integer": IntegerType,
    "long": LongType,
    "bigint": LongType,
    "float": FloatType,
    "real": FloatType,
    "double": DoubleType,
    "string": StringType,
    "date": DateType,
    "timestamp": TimestampType,
    "timestamp_ltz": TimestampType,
}
_DECIMAL = frozenset({"decimal", "dec", "numeric"})
_MOST_DIGITS = 38


def parse_ddl(text: str) -> StructType:
    """Parse *text*. Raises ValueError, with the position, if it is not a schema or has an unsupported type.

    NOT NULL is ignored, as in Spark's own sources: any body may lack a field.
    """
    parser = _Parser(text)
    fields = parser.fields()
    parser.expect_end()
    return StructType(fields)


class _Parser:
    """Recursive descent parser. Quoted names keep their quotes until they are used."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def fields(self) -> list[StructField]:
        """Parse `name type, name type`, at least one. Names must differ in more than case, as in Spark."""
        found = [self._field()]
        while self._take(","):
            found.append(self._field())
        names = [field.name.lower() for field in found]
        if len(set(names)) < len(names):
            raise ValueError(f"a name occurs twice (case is ignored): {', '.join(field.name for field in found)}")
        return found

    def _field(self) -> StructField:
        name = self._word("a name")
        self._take(":")
        kind = self._type()
        if self._take("not") and not self._take("null"):
            raise self._wrong("NULL")
        if self._take("comment") and self._next()[:1] not in ("'", '"'):
            raise self._wrong("a text in quotes")
        return StructField(name[1:-1].replace("``", "`") if name.startswith("`") else name, kind)

    def _type(self) -> DataType:
        name = self._word("a type")
        kind = name.lower()
        if kind in _PLAIN:
            return _PLAIN[kind]()
        if kind in _DECIMAL:
            return self._decimal()
        if kind == "array":
            self._expect("<")
            element = self._type()
            self._expect(">")
            return ArrayType(element)
        if kind == "struct":
            self._expect("<")
            fields = self.fields()
            self._expect(">")
            return StructType(fields)
        known = ", ".join([*_PLAIN, *sorted(_DECIMAL), "array<>", "struct<>"])
        raise ValueError(f"the type {name} is not supported; supported types: {known}")

    def _decimal(self) -> DecimalType:
        if not self._take("("):
            return DecimalType(10, 0)
        digits, scale = self._number(), 0
        if self._take(","):
            scale = self._number()
        self._expect(")")
        if not 1 <= digits <= _MOST_DIGITS or scale > digits:
            raise ValueError(
                f"decimal({digits},{scale}) is invalid: expected 1 to {_MOST_DIGITS} digits, scale at most digits"
            )
        return DecimalType(digits, scale)

    def _number(self) -> int:
        word = self._word("a number")
        if not (word.isascii() and word.isdecimal()):
            raise ValueError(f"{word} is not a number")
        return int(word)

    def _word(self, wanted: str) -> str:
        before, token = self._at, self._next()
        if not token or token[0] in "<>(),:'\"":
            self._at = before
            raise self._wrong(wanted)
        return token

    def _take(self, wanted: str) -> bool:
        """Consume the next token if it is *wanted* and return True."""
        before = self._at
        if self._next().lower() == wanted:
            return True
        self._at = before
        return False

    def _expect(self, wanted: str) -> None:
        if not self._take(wanted):
            raise self._wrong(wanted)

    def expect_end(self) -> None:
        """Raise ValueError if text follows."""
        if self._text[self._at :].strip():
            raise self._wrong("a comma or the end")

    def _next(self) -> str:
        """Consume and return the next token; "" at the end or if the text is not a token."""
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            return ""
        self._at = match.end()
        return match[match.lastindex or 0]

    def _wrong(self, wanted: str) -> ValueError:
        return ValueError(f"expected {wanted} at character {self._at}, in a schema such as `carrier string, delay int`")
