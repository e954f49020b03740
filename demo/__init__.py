"""`make demo`: real flights through the real services, and back."""
