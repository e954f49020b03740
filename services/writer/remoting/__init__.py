"""The remoting protocol at the writer: it is the broker to which RocketMQ's producers send."""
