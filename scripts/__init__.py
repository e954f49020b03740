"""Small programs of the build and the docs."""
