# What .ci/run and .ci/matrix share: steps with their results and durations, and a summary of them. For bash.
# What the tests draw is the same in each run: Hypothesis's examples, and the order of sets.
export CI=true PYTHONUNBUFFERED=1 PYTHONHASHSEED=0 HYPOTHESIS_PROFILE=gate
mkdir -p .cache
export FAILED_AT_FIRST="$PWD/.cache/failed_at_first.txt" # .ci/pytest_again.py writes it

passed=0
failed=0
skipped=0
summary=()

step() { # step NAME COMMAND...: a failing step does not keep the next ones from running
  local name=$1 started=$SECONDS status=0 result=ok
  shift
  printf '\n=== %s\n' "$name"
  rm -f "$FAILED_AT_FIRST"
  "$@" </dev/null || status=$?
  if [ "$status" -eq 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    result="FAILED (exit code $status)"
  fi
  summary+=("$(printf '%-52s %4d s  %s' "$name" $((SECONDS - started)) "$result")")
  if [ -s "$FAILED_AT_FIRST" ]; then
    summary+=("$(sed 's/^/note: failed at first, passed alone: /' "$FAILED_AT_FIRST")")
  fi
}

not_run() { # not_run NAME REASON: the summary says so; it is no failure
  skipped=$((skipped + 1))
  summary+=("$(printf '%-52s    -    not run: %s' "$1" "$2")")
}

limited() { # limited SECONDS COMMAND...: where there is a timeout command
  if command -v timeout >/dev/null 2>&1; then
    timeout --kill-after=30 "$@"
  else
    shift
    "$@"
  fi
}

releases() { # the lines of .ci/releases: release, Airflow, day, Pythons
  grep -v '^#' .ci/releases
}

tests_on() { # tests_on RELEASE AIRFLOW PYTHONS...: tests and demo there, with the first Python that this machine has
  local release=$1 airflow=$2 python
  shift 2
  if python=$(env -u PYTHON sh .ci/find-python.sh "$@" 2>/dev/null); then
    step "tests and demo, Airflow $airflow" limited 2400 make PYTHON="$python" RELEASE="$release" test-all demo
  else
    not_run "tests and demo, Airflow $airflow" "it needs Python $(echo "$@" | sed 's/ / or /g')"
  fi
}

finish() { # the summary; the exit code says whether all steps passed
  printf '\n=== summary\n'
  printf '%s\n' "${summary[@]}"
  printf '%s steps passed, %s failed, %s not run (%s s)\n' "$passed" "$failed" "$skipped" "$SECONDS"
  [ "$failed" -eq 0 ]
}
