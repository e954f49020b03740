"""`tidemark store …`: operations on a store's directory. One module per verb; this one only registers them."""

from __future__ import annotations

import typer

from tidemark.cli.store.backup import backup
from tidemark.cli.store.check import check
from tidemark.cli.store.corruptions import corruptions
from tidemark.cli.store.hand_back import hand_back
from tidemark.cli.store.rebuild import rebuild
from tidemark.cli.store.repair import repair
from tidemark.cli.store.restore import restore
from tidemark.cli.store.verify_backup import verify_backup

app = typer.Typer(no_args_is_help=True, help="Check, rebuild, back up and restore a store's directory.")


@app.callback()
def _store() -> None:
    """Check, rebuild, back up and restore a store's directory."""


app.command(epilog="Example: tidemark store check data")(check)
app.command(epilog="Example: tidemark store corruptions data --output json")(corruptions)
app.command(epilog="Example: tidemark store rebuild data --queues")(rebuild)
app.command(epilog="Example: tidemark store repair data")(repair)
app.command("hand-back", epilog="Example: tidemark store hand-back data")(hand_back)
app.command(epilog="Example: tidemark store backup data /backups/data")(backup)
app.command("verify-backup", epilog="Example: tidemark store verify-backup /backups/data")(verify_backup)
app.command(epilog="Example: tidemark store restore /backups/data data")(restore)
