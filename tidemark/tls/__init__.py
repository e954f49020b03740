"""TLS of services and clients: PEM files, SSL contexts and reloading. Imports neither gRPC nor a web server."""
