"""`tidemark store …`: what an operator does with a store's directory. One file a verb; this one only names them.

Exit status of every verb: 0 done, nothing found; 1 something was found; 2 it cannot be done (wrong usage, or an error
that says why).
"""

from __future__ import annotations

import typer

from tidemark.cli.store.backup import backup
from tidemark.cli.store.check import check
from tidemark.cli.store.corruptions import corruptions
from tidemark.cli.store.hand_back import hand_back
from tidemark.cli.store.rebuild import rebuild
from tidemark.cli.store.restore import restore
from tidemark.cli.store.verify_backup import verify_backup

app = typer.Typer(no_args_is_help=True, help="Check, rebuild, back up and restore a store's directory.")


@app.callback()
def _store() -> None:
    """Check, rebuild, back up and restore a store's directory."""


app.command()(check)
app.command()(corruptions)
app.command()(rebuild)
app.command("hand-back")(hand_back)
app.command()(backup)
app.command("verify-backup")(verify_backup)
app.command()(restore)
