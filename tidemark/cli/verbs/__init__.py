"""Verbs of the command, one module for each verb or group of verbs."""
