"""Small programs for the build and the docs."""
