"""Prometheus metrics of the services: the table of names, and conversion of numbers to an exposition."""
