#!/bin/sh
# Prints the Python that the environments are made with: $PYTHON if it is set, else the first usable one of python3.11,
# python3.12, python3.13, python3.14 and python3.
set -u

usable() { # a name on PATH is not enough: version managers put shims there that fail
  "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' >/dev/null 2>&1
}

version() {
  "$1" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null || echo 'does not start'
}

if [ -n "${PYTHON:-}" ]; then
  if usable "$PYTHON"; then
    echo "$PYTHON"
    exit 0
  fi
  echo "PYTHON=$PYTHON cannot be used: Python 3.11 to 3.14 is needed (found: $(version "$PYTHON"))." >&2
  exit 1
fi

for candidate in python3.11 python3.12 python3.13 python3.14 python3; do
  if usable "$candidate"; then
    echo "$candidate"
    exit 0
  fi
done

if command -v python3 >/dev/null 2>&1; then
  echo "Python 3.11 to 3.14 is needed; the python3 found here is $(version python3)." >&2
else
  echo "Python 3.11 to 3.14 is needed; no Python 3 was found on PATH." >&2
fi
echo "Install one (Debian: apt install python3.11 python3.11-venv), or name one: make PYTHON=/path/to/python3.11 ..." >&2
exit 1
