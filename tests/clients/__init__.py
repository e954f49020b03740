"""RocketMQ's classic clients as users run them: the same programs against a real broker and against Tidemark."""
