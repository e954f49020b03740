#!/bin/sh
# Provides the tools with which `make power-test` creates file systems on loop devices: installs Debian's if it may. Without them, tests are skipped.
set -eu

has_all() {
    command -v mkfs.ext4 >/dev/null && command -v mkfs.xfs >/dev/null && command -v losetup >/dev/null
}

has_all && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends e2fsprogs xfsprogs mount || :
    has_all && exit 0
fi
echo "no mkfs.ext4, mkfs.xfs or losetup: parts of the power test will be skipped (Debian: sudo apt-get install e2fsprogs xfsprogs)" >&2
