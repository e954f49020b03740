"""Followed answers: one request that stays open and gets each message as it becomes visible."""
