#!/bin/sh
# Installs the servers of the cluster tests, Redis and PostgreSQL, from Debian's packages. If it cannot install a missing
# server, it prints the server's name, and the cluster tests are skipped. The tests start their own servers, so the
# services of the packages stay off.
set -eu

missing=
command -v redis-server >/dev/null 2>&1 || missing="redis-server"
{ command -v postgres || ls /usr/lib/postgresql/*/bin/postgres; } >/dev/null 2>&1 || missing="$missing postgresql"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "missing: $missing. This needs root and apt-get, so install it yourself. Without it, the cluster tests are skipped."
  exit 0
fi

mkdir -p .cache
log=.cache/cluster-servers.log
echo "installing with apt-get: $missing"
export DEBIAN_FRONTEND=noninteractive
export RUNLEVEL=1 # so that no package starts its services
# shellcheck disable=SC2086
{ apt-get update && apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1 || {
  tail -n 20 "$log"
  exit 1
}
if [ -d /run/systemd/system ]; then
  # shellcheck disable=SC2086
  systemctl disable --now $missing >>"$log" 2>&1 || true
fi
