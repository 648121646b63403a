#!/bin/sh
# find-python.sh [VERSION...]: prints the Python for a new environment. This is $PYTHON if it is set. Otherwise it is the
# first usable Python of these versions (default: those that the tests run on): on PATH, from pyenv, or python3.
set -u

[ "$#" -gt 0 ] || set -- 3.11 3.12 3.13
wanted="Python $1"
for one in "$@"; do
  [ "$one" = "$1" ] || wanted="$wanted or $one"
done

usable() { # usable PYTHON VERSION...: start it, because version managers put shims on PATH that fail
  python=$1
  shift
  "$python" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] not in '$*'.split())" >/dev/null 2>&1
}

version() {
  "$1" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null || echo 'does not start'
}

if [ -n "${PYTHON:-}" ]; then
  if usable "$PYTHON" "$@"; then
    echo "$PYTHON"
    exit 0
  fi
  echo "PYTHON=$PYTHON cannot be used: $wanted is needed (found: $(version "$PYTHON"))." >&2
  exit 1
fi

for one in "$@"; do
  for candidate in "python$one" "${PYENV_ROOT:-${HOME:-}/.pyenv}/versions/$one".*/bin/python python3; do
    if usable "$candidate" "$one"; then
      echo "$candidate"
      exit 0
    fi
  done
done

if command -v python3 >/dev/null 2>&1; then
  echo "$wanted is needed; the python3 found here is $(version python3)." >&2
else
  echo "$wanted is needed; no Python 3 was found on PATH." >&2
fi
echo "Install it (Debian: apt install python$1 python$1-venv), or name its path: make PYTHON=/path/to/python$1 ..." >&2
exit 1
