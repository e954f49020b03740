"""The comparison of `make bench-peers`: equal work for Tidemark, a real Apache RocketMQ and a real Apache Kafka."""
