"""The group's state in etcd."""
