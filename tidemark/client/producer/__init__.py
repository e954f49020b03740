"""Producers: checks, queue choice, accumulation, tables. Sends through `wire`, never imports consumers."""
