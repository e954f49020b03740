"""`make demo`: sends real flights through the real services and reads them back."""
