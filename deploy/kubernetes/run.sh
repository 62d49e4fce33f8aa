#!/usr/bin/env bash
# Runs the jobs in order: build, merge, scan, commit. Jobs of an earlier run are
# deleted first; what they have finished is not done again.
#
#   deploy/kubernetes/run.sh s3|volume [NAMESPACE]
set -euo pipefail

manifests=$(dirname "$0")/${1:?usage: run.sh s3|volume [NAMESPACE]}
kubectl=(kubectl --namespace "${2:-default}")

# finished JOB: waits for the end of a job; fails if the job failed.
finished() {
  local condition
  while true; do
    condition=$("${kubectl[@]}" get "job/$1" -o 'jsonpath={.status.conditions[?(@.status=="True")].type}')
    case " $condition " in
      *" Complete "*) return 0 ;;
      *" Failed "*)
        "${kubectl[@]}" logs "job/$1" --tail=1 >&2 || true
        return 1
        ;;
    esac
    sleep "${POLL_SECONDS:-5}"
  done
}

"${kubectl[@]}" delete job --selector app=bloomjoin --ignore-not-found
"${kubectl[@]}" apply -k "$manifests" --selector step=settings
for step in build merge scan commit; do
  "${kubectl[@]}" apply -k "$manifests" --selector "step=$step"
  finished "bloomjoin-$step"
done
