"""RocketMQ's brokers as slaves of this store: they copy its log by their own protocol."""
