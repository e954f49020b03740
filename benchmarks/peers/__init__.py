"""`make bench-peers`: the same work for Tidemark, a real Apache RocketMQ and a real Apache Kafka. Not tests."""
