"""TLS of services and clients: PEM files, what is made of them, and their reload. Knows no gRPC and no web server."""
