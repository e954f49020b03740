"""The store and the service of the routes' tests, for the handlers of the remoting server."""

from tests.unit.query.routes.conftest import built, service

__all__ = ["built", "service"]  # fixtures
