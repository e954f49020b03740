"""Bytes ⇄ values of RocketMQ's store format. Opens nothing: no os, io, mmap or pathlib below this folder."""
