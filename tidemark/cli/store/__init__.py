"""`tidemark store`: verbs for the operator of a store, one module for each."""
