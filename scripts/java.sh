#!/bin/sh
# Spark needs Java 17 or 21 from the operating system. Finds one, or installs Debian's when it may, or says what to do.
set -eu

java_version() {        # the major number of the `java` that Spark would start; nothing when there is none
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p'
}
fits() {
    case "$(java_version)" in 17 | 21) ;; *) return 1 ;; esac
}

if fits; then
    exit 0
fi
if [ -n "${JAVA_HOME:-}" ]; then
    echo "JAVA_HOME=$JAVA_HOME holds no Java 17 or 21, which Spark needs: correct or unset it." >&2
    exit 1
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless
    fits && exit 0
fi
cat >&2 <<'END'
Spark needs Java 17 or 21, and no fitting `java` was found. Install one, then run make again:
    Debian, Ubuntu   sudo apt-get install openjdk-17-jre-headless      (where a release has no 17: openjdk-21-jre-headless)
    Fedora           sudo dnf install java-21-openjdk-headless
    macOS            brew install openjdk@17                           (and set JAVA_HOME as brew tells)
or point JAVA_HOME at one.
END
exit 1
