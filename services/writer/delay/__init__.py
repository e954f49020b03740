"""Delivery of delayed messages when they are due."""
