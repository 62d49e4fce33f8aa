#!/usr/bin/env bash
# Runs a command, again after exit code 75 (it may succeed another time), for batch
# systems that do not decide by exit code. A signal is passed on.
#
#   deploy/retry.sh bloomjoin join --ids ids/ --on user_id -o out/ logs/
set -uo pipefail

pause=${RETRY_SECONDS:-60}
for attempt in 1 2 3; do
  "$@" &
  child=$!
  trap 'kill -TERM "$child" 2>/dev/null' TERM INT HUP
  wait "$child"
  code=$?
  trap - TERM INT HUP
  if ((code > 128)); then # a signal has ended wait: the command may still be cleaning up
    wait "$child"
    exit "$code"
  fi
  ((code == 75 && attempt < 3)) || exit "$code"
  echo "attempt $attempt failed and may succeed another time; next in $pause s" >&2
  sleep "$pause"
  pause=$((pause * 2))
done
