"""HTTP connections to the query service, and its answers as pages, tables and errors."""
