#!/bin/sh
# environment.sh FOLDER CONSTRAINTS GROUP: makes the virtual environment FOLDER with this package, its extras and a dependency
# group of pyproject.toml, unless the one that is there was made of the same. PYTHON names another Python.
set -eu
folder=$1 constraints=$2 group=$3
stamp=$(cat "$constraints" pyproject.toml airflow_provider_platform/__init__.py "$0" | cksum)" $PWD $group"
[ "$(cat "$folder/stamp" 2>/dev/null || true)" != "$stamp" ] || exit 0

# Settings of the caller that would send the installation elsewhere, or pull other code into it.
unset CONDA_PREFIX PIP_CONSTRAINT PIP_PREFIX PIP_TARGET PIP_USER PYTHONHOME PYTHONPATH UV_BUILD_CONSTRAINT UV_CONSTRAINT \
  UV_OVERRIDE UV_PROJECT_ENVIRONMENT VIRTUAL_ENV
# Caches stay in the folder of the project.
export PIP_CACHE_DIR="$PWD/.cache/pip" UV_CACHE_DIR="$PWD/.cache/uv" PIP_DISABLE_PIP_VERSION_CHECK=1

if [ -n "${PYTHON:-}" ]; then set -- "$PYTHON"; else set -- python3.11 python3.12 python3.13 python3; fi
for python; do
  # Started, because version managers put programs on PATH that fail.
  "$python" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break
  python=
done
[ -n "$python" ] || { echo "Python 3.11, 3.12 or 3.13 with venv is needed: make PYTHON=/path/to/python ..." >&2; exit 1; }

echo "Making the environment $folder with $("$python" --version) (once; about a minute)"
rm -rf "$folder"
"$python" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet -c "$constraints" uv
configured() { # what pip is configured with, which uv does not read
  "$folder/bin/python" -m pip config list | sed -n "s/^[a-z:]*\.*\.$1='\(.*\)'$/\1/p" | tail -n 1
}
index=$(configured index-url) certificates=$(configured cert)
[ -z "$index" ] || export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$index}"
[ -z "$certificates" ] || export SSL_CERT_FILE="${SSL_CERT_FILE:-$certificates}"
"$folder/bin/uv" pip install --python "$folder/bin/python" -c "$constraints" --build-constraints "$constraints" \
  --group "$group" --editable ".[charts,pandas,polars,sandbox,sql]" --quiet
echo "$stamp" >"$folder/stamp"
