"""Files as address spaces: paths, locks and durability. Independent of the layout of messages."""
