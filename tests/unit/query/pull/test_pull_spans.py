from __future__ import annotations

from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from services.indexer.query.config import QuerySettings
from services.indexer.query.pull.pull_spans import PullSpans
from services.indexer.query.pull.pulled import AnswerLimits, Pulled
from services.indexer.query.schema.query_arguments import PullLimits
from tests.built_store import BuiltStore
from tidemark.read.pull import PullRequest, pull
from tidemark.read.store_reader import StoreReader
from tidemark.read.tag_filter import TagFilter
from tidemark.tracing import attributes


def traced(number: int) -> dict[str, str]:
    """Return the properties of a message of trace *number*."""
    return {"traceparent": f"00-{number:032x}-{number:016x}-01"}


class Pulls:
    """Pulls from one store with spans, and the spans that were made.

    request  the span of the request that pulls
    parts    of the last pull
    """

    def __init__(self, root: Path, *, limit: int = 100) -> None:
        self.built = BuiltStore(root, log_file_size=1 << 20)
        self.built.topic("orders")
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._tracer = provider.get_tracer("test")
        self._spans = PullSpans(self._tracer, limit=limit)
        self.request = self._tracer.start_span("request")
        self.parts = 0

    def run(self, tag: str | None = None, *, whole_records: bool = False) -> list[ReadableSpan]:
        """Pull everything; return the spans of its messages."""
        self.built.publish()
        store = StoreReader(self.built.root)
        watermark, queue = store.watermark(), store.queue("orders", 0)
        tags = TagFilter.parse([] if tag is None else [tag])
        asked = PullRequest(0, 100, 1 << 20, tags=tags, whole_records=whole_records)
        result = pull(queue, store.log, store.bounds(queue, watermark), asked)
        self.parts = len(result.parts)
        limits = AnswerLimits.of(PullLimits(), QuerySettings(), whole_records=False)
        with trace.use_span(self.request):
            around = self._spans.around(lambda pulled: pulled.result.message_count, "orders", 0)
        assert around(Pulled(watermark, result, 0, limits)) == result.message_count
        return list(self._exporter.get_finished_spans())


def traces(spans: list[ReadableSpan]) -> list[int]:
    return [span.context.trace_id for span in spans]


def test_each_traced_message_has_a_span_in_its_own_trace(tmp_path: Path) -> None:
    pulls = Pulls(tmp_path)
    first = pulls.built.append("orders", b"a", traced(7))
    pulls.built.append("orders", b"without a trace")
    pulls.built.append("orders", b"b", traced(9))
    spans = pulls.run()
    assert traces(spans) == [7, 9]
    assert [span.parent.span_id for span in spans if span.parent is not None] == [7, 9]
    assert spans[0].name == "pull orders"
    assert spans[0].attributes is not None
    assert spans[0].attributes[attributes.PHYSICAL_OFFSET] == first.physical_offset
    assert spans[0].attributes[attributes.DESTINATION] == "orders"


def test_a_message_with_another_tag_of_the_same_hash_has_no_span(tmp_path: Path) -> None:
    """Its record is read, because the unit has only the hash."""
    pulls = Pulls(tmp_path)
    for number, tag in enumerate(("Aa", "BB", "Aa"), 1):
        pulls.built.append("orders", b"x", {**traced(number), "TAGS": tag})
    assert traces(pulls.run("Aa")) == [1, 3]


def test_a_damaged_record_has_no_span(tmp_path: Path) -> None:
    """This is also true of an answer of records as stored."""
    for whole_records in (False, True):
        pulls = Pulls(tmp_path / str(whole_records))
        written = [pulls.built.append("orders", b"x", traced(number)) for number in (1, 2, 3)]
        pulls.built.write_log(written[1].physical_offset + 88, b"\xff")  # the body
        assert traces(pulls.run(whole_records=whole_records)) == [1, 3]


def test_a_span_is_linked_to_the_request(tmp_path: Path) -> None:
    pulls = Pulls(tmp_path)
    pulls.built.append("orders", b"a", traced(7))
    (span,) = pulls.run()
    assert [link.context for link in span.links] == [pulls.request.get_span_context()]


def test_the_limit_holds_over_all_parts_of_a_pull(tmp_path: Path) -> None:
    """A large first message lets the pull read the others in two parts."""
    pulls = Pulls(tmp_path, limit=95)
    pulls.built.append("orders", b"x" * 40_000)
    for number in range(1, 100):
        pulls.built.append("orders", b"x", traced(number))
    assert traces(pulls.run()) == list(range(1, 96))
    assert pulls.parts > 1


def test_only_returned_messages_have_spans(tmp_path: Path) -> None:
    """A damaged record and a record of another tag have none."""
    pulls = Pulls(tmp_path)
    pulls.built.append("orders", b"other", {**traced(1), "TAGS": "A"})
    pulls.built.append("orders", b"given", {**traced(2), "TAGS": "B"})
    damaged = pulls.built.append("orders", b"damaged", {**traced(3), "TAGS": "B"})
    pulls.built.write_log(damaged.physical_offset + 88, b"D")  # the first byte of the body
    assert traces(pulls.run("B")) == [2]


def test_one_pull_makes_at_most_as_many_spans_as_the_limit(tmp_path: Path) -> None:
    pulls = Pulls(tmp_path, limit=2)
    for number in range(1, 6):
        pulls.built.append("orders", b"x", traced(number))
    assert traces(pulls.run()) == [1, 2]
