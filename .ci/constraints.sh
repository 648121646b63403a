#!/bin/sh
# Resolves the constraints files anew from pyproject.toml, one for each release of .ci/airflow-releases.txt, one for a cluster and
# one for the documentation: exact versions, without hashes and hosts. Run as `make constraints`; to move to another
# release, change the versions and days there.
set -eu

uv=$1 # the uv to resolve with

resolve() { # resolve FILE ARGUMENTS...: reads the fixed versions from standard input
  file=$1
  shift
  "$uv" pip compile --quiet --upgrade --no-annotate --no-header --python-version 3.11 "$@" \
    --constraint /dev/stdin --output-file "$file.new" pyproject.toml
  {
    printf '# Made by `make constraints`; exact versions of everything the environments hold.\n'
    cat "$file.new"
  } >"$file"
  rm "$file.new"
  printf '%s: %s packages\n' "$file" "$(grep -c '==' "$file")"
}

grep -v '^#' .ci/airflow-releases.txt | while read -r release airflow day _; do
  if [ "$day" = any ]; then # the newest, where everything is developed
    echo "apache-airflow==$airflow" | resolve constraints.txt --extra dev --universal
  else # an older one runs with the packages of its days only
    echo "apache-airflow==$airflow" | resolve "constraints-$release.txt" --extra test --exclude-newer "$day"
  fi
done

# Whatever both hold is in both the same.
resolve constraints-cluster.txt --extra cluster --universal <constraints.txt
# What speaks to S3 needs an older python-dateutil than the newest Airflow would take.
grep "^apache-airflow==" constraints.txt | resolve constraints-storage.txt --extra storage --universal
resolve constraints-docs.txt --extra docs --extra dist --universal <constraints.txt
