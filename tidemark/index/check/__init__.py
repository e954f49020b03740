"""Checking a store: everything it holds against everything else, as functions that read and never write."""
