"""Tidemark: an append-only event log in Apache RocketMQ's file format, for Python and Spark."""
