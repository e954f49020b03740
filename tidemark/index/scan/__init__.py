"""Scans a log in parallel ranges: each walk's rows and keys are written to files, without bodies, for the builders."""
