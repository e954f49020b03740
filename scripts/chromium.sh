#!/bin/sh
# Provides a real browser for `make console-test` and `make pictures`: finds Chromium, installs Debian's if it may, or prints how to install it.
set -eu

has_one() {
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null
}

if has_one; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core
    has_one && exit 0
fi
cat >&2 <<'END'
The console's tests need a real browser, and Chromium was not found. Install it, then run make again:
    Debian           sudo apt-get install chromium
    Ubuntu           sudo snap install chromium
    Fedora           sudo dnf install chromium
END
exit 1
