#!/usr/bin/env bash
# Curl tour: append, pull, wait and look up messages with curl. A step fails if its answer is not as expected.
set -euo pipefail
base=${TIDEMARK_QUERY_URL:-http://127.0.0.1:8080}
topic=$base/v1/topics/tour
key=k-$$-$(date +%s)

# step TITLE EXPECTED CURL-ARGUMENT...: prints the answer, which must contain the text EXPECTED
step() {
    printf '\n# %s\n' "$1"
    answer=$(curl -sS "${@:3}")
    printf '%s\n' "$answer"
    grep -qF -- "$2" <<< "$answer" || { echo "expected: $2" >&2; exit 1; }
}

step 'append two messages; the answer means that both are on disk' '"queue_offset"' \
    "$topic/messages" -H 'content-type: application/json' -d '{
        "queue_id": 0,
        "messages": [
            {"body": "hello", "body_encoding": "utf8", "tag": "A", "keys": ["'"$key"'"]},
            {"body": "world", "body_encoding": "utf8", "tag": "B"}
        ]}'
offset=$(grep -o '"queue_offset":[0-9]*' <<< "$answer" | head -n 1 | cut -d : -f 2)

step 'pull from that offset; wait_ms waits for messages' "$key" \
    "$topic/queues/0/messages?offset=$offset&body_encoding=utf8&wait_ms=10000"

step 'pull messages with one tag from the beginning' '"body":"world"' \
    "$topic/queues/0/messages?offset=earliest&tag=B&max_messages=1&body_encoding=utf8"

step 'look up by key' '"body":"hello"' "$topic/messages?key=$key&body_encoding=utf8"

step "show the queue's bounds" '"max_offset"' "$topic/queues/0"

step 'find the offset at a time (RFC 3339 or epoch milliseconds)' '"offset"' "$topic/queues/0/offset?time=2020-01-01T00:00:00Z"

step 'show the watermark and the committed offset' '"physical_offset"' "$base/v1/watermark"

step 'an error is a problem (RFC 9457) with a stable reason' '"reason":"TOPIC_NOT_FOUND"' "$base/v1/topics/no-such-topic"
