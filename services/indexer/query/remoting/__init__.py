"""The remoting protocol at the query service: it is the broker from which RocketMQ's consumers read."""
