"""What the services show to Prometheus: the one table of names, and how numbers become an exposition."""
