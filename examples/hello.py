"""Hello: send one message and read it back.

Start the services first, in another terminal: `tidemark serve`.
"""

from tidemark.client import Consumer, Producer

with Producer() as producer:
    sent = producer.send("hello", b"Hello, log!", key="greeting-1", tag="A")
print(f"stored: queue {sent.queue_id}, offset {sent.queue_offset}")

with Consumer(queues=[("hello", sent.queue_id)], start=sent.queue_offset) as consumer:
    message = consumer.poll(timeout_s=10)[0]
print(f"read: {message.text()} (tag {message.tag}, keys {', '.join(message.keys)})")
