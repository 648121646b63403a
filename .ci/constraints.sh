#!/bin/sh
# Resolves the constraints files again from pyproject.toml: one for each release in .ci/airflow-releases.txt, and one each
# for the cluster, the object store and the documentation. They have exact versions, without hashes and hosts. Called by
# `make constraints`. To support another release, change the versions and days in .ci/airflow-releases.txt.
set -eu

uv=$1 # the uv to resolve with

resolve() { # resolve FILE ARGUMENTS...: reads the fixed versions from standard input
  file=$1
  shift
  "$uv" pip compile --quiet --upgrade --no-annotate --no-header --python-version 3.11 \
    --extra charts --extra pandas --extra polars --extra sandbox --extra sql "$@" \
    --constraint /dev/stdin --output-file "$file.new" pyproject.toml
  {
    printf '# Made by `make constraints`; exact versions of everything the environments hold.\n'
    cat "$file.new"
  } >"$file"
  rm "$file.new"
  printf '%s: %s packages\n' "$file" "$(grep -c '==' "$file")"
}

grep -v '^#' .ci/airflow-releases.txt | while read -r release airflow day _; do
  if [ "$day" = any ]; then # the release on which the package is developed
    echo "apache-airflow==$airflow" | resolve constraints.txt --group dev --universal
  else # another release runs only with the packages of its time
    echo "apache-airflow==$airflow" | resolve "constraints-$release.txt" --group test --exclude-newer "$day"
  fi
done

# Packages that are in both files have the same version in both.
resolve constraints-cluster.txt --group cluster --universal <constraints.txt
# The S3 client needs an older python-dateutil than the newest Airflow would use.
grep "^apache-airflow==" constraints.txt | resolve constraints-storage.txt --group storage --universal
resolve constraints-docs.txt --group docs --universal <constraints.txt
