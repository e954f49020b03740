#!/bin/sh
# Make an empty .venv: scripts/venv.sh PYTHON DIR
set -eu
python=$1 dir=$2

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "Tidemark needs Python 3.11 or newer, and $python is older: run make sync PYTHON=python3.11" >&2
    exit 1
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then      # in Debian they are a separate package
    package="python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update
        DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$package"
    else
        echo "$python cannot create virtual environments: install venv and ensurepip (Debian: sudo apt-get install $package)" >&2
        exit 1
    fi
fi
"$python" -m venv --clear "$dir"
