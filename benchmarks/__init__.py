"""`make bench`: the figures, with machine and flush mode. Not tests."""
