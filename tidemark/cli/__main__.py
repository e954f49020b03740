"""`python -m tidemark.cli`, where the `tidemark` command is not on the path."""

from tidemark.cli.main import app

app(prog_name="tidemark")
