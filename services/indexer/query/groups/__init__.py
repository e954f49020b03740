"""Consumer groups: members, generations, offsets, lag. Knows no HTTP."""
