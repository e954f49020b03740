"""Pulls: one or many queues of a request, long polls, and the forms of an answer."""
