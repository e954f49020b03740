#!/bin/sh
# Provides Java 17 or 21 for Spark: finds one, installs Debian's if it may, or prints how to install it.
set -eu

java_version() {        # prints the major version of the `java` that Spark would start; nothing if there is none
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p'
}
fits() {
    case "$(java_version)" in 17 | 21) ;; *) return 1 ;; esac
}

if fits; then
    exit 0
fi
if [ -n "${JAVA_HOME:-}" ]; then
    echo "JAVA_HOME=$JAVA_HOME has no Java 17 or 21, which Spark needs: correct it or unset it." >&2
    exit 1
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends openjdk-17-jre-headless
    fits && exit 0
fi
cat >&2 <<'END'
Spark needs Java 17 or 21, and no such `java` was found. Install one, then run make again:
    Debian, Ubuntu   sudo apt-get install openjdk-17-jre-headless      (if the release has no 17: openjdk-21-jre-headless)
    Fedora           sudo dnf install java-21-openjdk-headless
    macOS            brew install openjdk@17                           (and set JAVA_HOME as brew prints)
Or set JAVA_HOME to an installed one.
END
exit 1
