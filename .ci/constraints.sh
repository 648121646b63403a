#!/bin/sh
# Resolves constraints.txt (the newest Airflow this project supports), constraints-cluster.txt (the same with what a
# cluster needs) and constraints-3.0.txt (the oldest Airflow) anew from pyproject.toml: exact versions, without hashes
# and hosts. Run as `make constraints`; to move to another release, change the versions and dates here.
set -eu

uv=$1 # the uv to resolve with

resolve() { # resolve FILE ARGUMENTS...: reads the fixed versions from standard input
  file=$1
  shift
  "$uv" pip compile --quiet --upgrade --no-annotate --no-header "$@" \
    --constraint /dev/stdin --output-file "$file.new" pyproject.toml
  {
    printf '# Made by `make constraints`; exact versions of everything the environments hold.\n'
    cat "$file.new"
  } >"$file"
  rm "$file.new"
  printf '%s: %s packages\n' "$file" "$(grep -c '==' "$file")"
}

resolve constraints.txt --extra dev --universal --python-version 3.11 <<EOF
apache-airflow==3.3.2
EOF

# Whatever both hold is in both the same.
resolve constraints-cluster.txt --extra cluster --universal --python-version 3.11 <constraints.txt

# Airflow 3.0.6 runs with the packages of its days only.
resolve constraints-3.0.txt --extra test --python-version 3.11 --exclude-newer 2025-09-10 <<EOF
apache-airflow==3.0.6
EOF
