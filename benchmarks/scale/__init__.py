"""What a pair of writer and indexer needs for a workload: a model, its measured constants, and the tables of both."""
