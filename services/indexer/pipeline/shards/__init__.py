"""A shard in an epoch: its lock, its builders, its marks, its repair. Plain files, no Spark."""
