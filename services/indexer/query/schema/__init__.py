"""Requests and answers as OpenAPI describes them. Imports no other package of the service."""
