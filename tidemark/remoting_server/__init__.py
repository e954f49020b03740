"""Serves the remoting protocol: connections, access, routes, group members. The services add the handlers of requests.

This package must not import a service.
"""
