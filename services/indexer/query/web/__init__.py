"""HTTP: connections with limits, middleware, problems (RFC 9457), rights of routes."""
