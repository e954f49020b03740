#!/bin/sh
# Provides a redis-server for the rows python_* of `make bench-peers`: installs Debian's if it may. Without it, redis-py is skipped.
set -eu

has_it() {
    command -v redis-server >/dev/null
}

has_it && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends redis-server || :
    has_it && exit 0
fi
echo "no redis-server: redis-py will be skipped (Debian: sudo apt-get install redis-server)" >&2
