"""OpenTelemetry traces and request ids of the services. docs/tracing.md.

OpenTelemetry is imported only if traces are on.
"""
