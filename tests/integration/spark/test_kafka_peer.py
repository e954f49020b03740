"""Spark's own Kafka source and sink, with a real Kafka, beside format("tidemark") with kafkaColumns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from benchmarks.peers.kafka import Kafka
from benchmarks.peers.peer import Flush
from benchmarks.peers.toolchain import SPARK_KAFKA, ToolchainMissingError, fetch_jars
from tidemark.local.local_stack import LocalStack

pytestmark = pytest.mark.exhaustive  # jars from Maven Central, and its own Spark session

_PROGRAM = """
import json, sys, time
from pyspark.sql import SparkSession
from tidemark.client import Query

given = json.loads(sys.argv[1])
spark = (
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.jars", ",".join(given["jars"])).getOrCreate()
)
topic, tidemark, topics = given["topic"], {"url": given["query"], "kafkaColumns": "true"}, {"subscribe": given["topic"]}
kafka = {"kafka.bootstrap.servers": given["kafka"]}
rows = spark.sql('''
    SELECT IF(id % 3 = 0, NULL, CAST(concat('k', id) AS BINARY)) AS key, CAST(concat('v', id) AS BINARY) AS value,
        IF(id % 2 = 0, NULL, array(struct('x' AS key, CAST('1' AS BINARY) AS value))) AS headers
    FROM range(100)
''')
rows.write.format("kafka").options(**kafka, topic=topic).option("includeHeaders", "true").save()
reader = lambda headers: spark.read.option("includeHeaders", headers).options(**topics)
of_kafka = reader("true").format("kafka").options(**kafka).load()
of_kafka.write.format("tidemark").mode("append").options(writers=given["writer"], kafkaColumns="true").save()
with Query(given["query"]) as query:
    while (now := query.watermark())["watermark"]["physical_offset"] < now["committed_offset"]:
        time.sleep(0.05)
of_tidemark = reader("true").format("tidemark").options(**tidemark).load()
schemas = [
    [reader(headers).format("kafka").options(**kafka).load().schema.json(),
     reader(headers).format("tidemark").options(**tidemark).load().schema.json()]
    for headers in ("true", "false")
]
columns = ["CAST(key AS STRING)", "CAST(value AS STRING)", "topic", "partition", "offset", "timestampType",
           "to_json(headers) AS headers"]
found = [
    sorted(map(list, frame.selectExpr(columns).collect()), key=lambda row: row[3:5])
    for frame in (of_kafka, of_tidemark)
]
print(json.dumps({"schemas": schemas, "rows": found}))
"""


def test_a_topic_of_kafka_is_copied_and_read_with_the_same_columns(stack: LocalStack, tmp_path: Path) -> None:
    """Schemas are equal, with and without headers; so is every row, but for the kind of its timestamp."""
    try:
        jars = sorted(fetch_jars(SPARK_KAFKA).glob("*.jar"))
        with Kafka(tmp_path, Flush.ASYNC) as kafka:
            topic = f"copied-{uuid4().hex[:8]}"
            kafka.create_topic(topic, 4)
            answer = run(
                jars=[str(jar) for jar in jars],
                topic=topic,
                kafka=kafka.address,
                writer=stack.writer_address,
                query=stack.query_url,
            )
    except ToolchainMissingError as error:
        pytest.skip(str(error))
    for of_kafka, of_tidemark in answer["schemas"]:
        assert of_tidemark == of_kafka
    of_kafka, of_tidemark = answer["rows"]
    assert len(of_kafka) == 100
    assert {row.pop(5) for row in of_kafka} == {0}  # CreateTime
    assert {row.pop(5) for row in of_tidemark} == {1}  # LogAppendTime
    assert of_tidemark == of_kafka


def run(**given: Any) -> Any:
    """Run the program in a process of its own and return its answer."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, json.dumps(given)],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return json.loads(done.stdout.splitlines()[-1])
