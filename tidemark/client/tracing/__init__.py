"""Spans of producers and consumers, in programs that use OpenTelemetry."""
