"""RocketMQ's protocol for slaves, as the writer speaks it."""
