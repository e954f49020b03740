#!/usr/bin/env bash
# Curl tour: append, pull, wait, look up and ask, with nothing but curl. A step fails when its answer is not as expected.
set -euo pipefail
base=${TIDEMARK_QUERY_URL:-http://127.0.0.1:8080}
topic=$base/v1/topics/tour
key=k-$$-$(date +%s)

# step WHAT EXPECTED CURL-ARGUMENT...: shows the answer, which must hold the text EXPECTED
step() {
    printf '\n# %s\n' "$1"
    answer=$(curl -sS "${@:3}")
    printf '%s\n' "$answer"
    grep -qF -- "$2" <<< "$answer" || { echo "expected: $2" >&2; exit 1; }
}

step 'append: the answer means that both are on disk' '"queue_offset"' \
    "$topic/messages" -H 'content-type: application/json' -d '{
        "queue_id": 0,
        "messages": [
            {"body": "hello", "body_encoding": "utf8", "tag": "A", "keys": ["'"$key"'"]},
            {"body": "world", "body_encoding": "utf8", "tag": "B"}
        ]}'
offset=$(grep -o '"queue_offset":[0-9]*' <<< "$answer" | head -n 1 | cut -d : -f 2)

step 'pull from there on; wait_ms: until something is there' "$key" \
    "$topic/queues/0/messages?offset=$offset&body_encoding=utf8&wait_ms=10000"

step 'pull from the beginning, one tag' '"body":"world"' \
    "$topic/queues/0/messages?offset=earliest&tag=B&max_messages=1&body_encoding=utf8"

step 'look up by key' '"body":"hello"' "$topic/messages?key=$key&body_encoding=utf8"

step "the queue's bounds" '"max_offset"' "$topic/queues/0"

step 'the offset at a time: RFC 3339 or epoch milliseconds' '"offset"' "$topic/queues/0/offset?time=2020-01-01T00:00:00Z"

step 'how far is everything?' '"physical_offset"' "$base/v1/watermark"

step 'an error is a problem (RFC 9457) with a stable reason' '"reason":"TOPIC_NOT_FOUND"' "$base/v1/topics/no-such-topic"
