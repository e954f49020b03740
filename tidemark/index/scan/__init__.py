"""Scanning a log in ranges, in parallel: what a walk saw goes to files without the bodies, and builders read these."""
