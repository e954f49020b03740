#!/bin/sh
# Provides a JDK and Maven for the real broker of `make conformance`: installs Debian's if it may. Without them, its tests are skipped.
set -eu

has_all() {
    command -v javac >/dev/null && command -v mvn >/dev/null
}

has_all && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jdk-headless maven || :
    has_all && exit 0
fi
echo "no javac or no mvn: the rounds with a real broker will be skipped (Debian: sudo apt-get install openjdk-17-jdk-headless maven)" >&2
