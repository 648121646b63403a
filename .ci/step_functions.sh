# What .ci/run and .ci/run-matrix share: steps with their results and durations, and a summary of them. For bash.
# What the tests draw is the same in each run: Hypothesis's examples, and the order of sets.
export CI=true PYTHONUNBUFFERED=1 PYTHONHASHSEED=0 HYPOTHESIS_PROFILE=gate
REPORTS=$PWD/.cache/steps
mkdir -p "$REPORTS"
export FAILED_AT_FIRST=$REPORTS/failed_at_first # .ci/pytest_again.py writes it
trap stop_beside EXIT

passed=0
failed=0
skipped=0
shown=0
names=()
pids=()
summary=()

step() { # step NAME COMMAND...: a failing step does not keep the next ones from running
  local name=$1 started=$SECONDS status=0
  shift
  printf '\n=== %s\n' "$name"
  rm -f "$FAILED_AT_FIRST"
  "$@" </dev/null || status=$?
  record "$name" $((SECONDS - started)) "$status" "$FAILED_AT_FIRST"
}

record() { # record NAME SECONDS STATUS FAILED_AT_FIRST: count a step, for the summary
  local result=ok
  if [ "$3" -eq 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    result="FAILED (exit code $3)"
  fi
  summary+=("$(printf '%-52s %4d s  %s' "$1" "$2" "$result")")
  if [ -s "$4" ]; then
    summary+=("$(sed 's/^/note: failed at first, passed alone: /' "$4")")
  fi
}

beside() { # beside NAME COMMAND...: a step of its own beside the next ones, until `joined`
  local report=$REPORTS/${#names[@]}
  names+=("$1")
  shift
  rm -f "$report".*
  set -m # a process group of its own, and Ctrl-C means there what it means elsewhere
  (
    started=$SECONDS status=0
    export FAILED_AT_FIRST=$report.failed_at_first
    "$@" </dev/null || status=$?
    echo "$((SECONDS - started)) $status" >"$report.result"
  ) >"$report.log" 2>&1 &
  set +m
  pids+=($!)
}

joined() { # wait for the steps that run beside each other, and show what each has written
  local report seconds status
  for ((; shown < ${#names[@]}; shown++)); do
    report=$REPORTS/$shown
    printf '\n=== %s\n' "${names[shown]}"
    wait "${pids[shown]}" || true
    cat "$report.log"
    seconds=0 status=1 # of a step that was killed
    [ ! -s "$report.result" ] || read -r seconds status <"$report.result"
    record "${names[shown]}" "$seconds" "$status" "$report.failed_at_first"
  done
}

stop_beside() { # end what still runs beside
  local number
  for ((number = shown; number < ${#pids[@]}; number++)); do
    kill -- -"${pids[number]}" 2>/dev/null || true
  done
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

releases() { # the lines of .ci/airflow-releases.txt: release, Airflow, day, Pythons
  grep -v '^#' .ci/airflow-releases.txt
}

tests_on() { # tests_on TESTS RELEASE AIRFLOW PYTHONS...: make TESTS and the demo there, with the first Python found here
  local tests=$1 release=$2 airflow=$3 python
  shift 3
  if python=$(env -u PYTHON sh .ci/find-python.sh "$@" 2>/dev/null); then
    step "tests and demo, Airflow $airflow" limited 2400 make PYTHON="$python" RELEASE="$release" "$tests" demo
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
