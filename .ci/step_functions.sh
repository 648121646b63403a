# Functions of .ci/run and .ci/run-matrix, for bash: run steps, record their results and durations, print a summary.
# Each run uses the same random values: Hypothesis's examples, and the order of sets.
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

step() { # step NAME COMMAND...: run a step. If it fails, the next steps run all the same
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
    summary+=("$(sed 's/^/note: failed at first, then passed when run alone: /' "$4")")
  fi
}

beside() { # beside NAME COMMAND...: run a step in parallel with the next ones, until `joined`
  local report=$REPORTS/${#names[@]}
  names+=("$1")
  shift
  rm -f "$report".*
  set -m # so that the step has its own process group, and reacts to Ctrl-C
  (
    started=$SECONDS status=0
    export FAILED_AT_FIRST=$report.failed_at_first
    "$@" </dev/null || status=$?
    echo "$((SECONDS - started)) $status" >"$report.result"
  ) >"$report.log" 2>&1 &
  set +m
  pids+=($!)
}

joined() { # wait for the steps that run in parallel, and print the output of each
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

stop_beside() { # end the parallel steps that still run
  local number
  for ((number = shown; number < ${#pids[@]}; number++)); do
    kill -- -"${pids[number]}" 2>/dev/null || true
  done
}

not_run() { # not_run NAME REASON: list the step as not run. This is not a failure
  skipped=$((skipped + 1))
  summary+=("$(printf '%-52s    -    not run: %s' "$1" "$2")")
}

limited() { # limited SECONDS COMMAND...: run with a time limit, if this machine has the command `timeout`
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

tests_on() { # tests_on TESTS RELEASE AIRFLOW PYTHONS...: make TESTS and the demo on this release, with the first Python found
  local tests=$1 release=$2 airflow=$3 python
  shift 3
  if python=$(env -u PYTHON sh .ci/find-python.sh "$@" 2>/dev/null); then
    step "tests and demo, Airflow $airflow" limited 2400 make PYTHON="$python" RELEASE="$release" "$tests" demo
  else
    not_run "tests and demo, Airflow $airflow" "it needs Python $(echo "$@" | sed 's/ / or /g')"
  fi
}

finish() { # print the summary. The exit code says whether all steps passed
  printf '\n=== summary\n'
  printf '%s\n' "${summary[@]}"
  printf '%s steps passed, %s failed, %s not run (%s s)\n' "$passed" "$failed" "$skipped" "$SECONDS"
  [ "$failed" -eq 0 ]
}
