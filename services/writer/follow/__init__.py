"""A slave of a RocketMQ master: the store copies the log of a running broker over the network."""
