"""OpenTelemetry traces and request ids of the services: what is told of one request, under one number. docs/tracing.md.

OpenTelemetry's modules are imported where traces are on, and nowhere else.
"""
