"""The capacity model: the resources that a pair of writer and indexer needs for a workload, and measured constants."""
