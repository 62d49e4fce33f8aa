#!/usr/bin/env bash
# Submits the steps build, merge, scan and commit, each after the one before. All nodes
# see LAKE, which holds ids/ and logs/.
#
#   LAKE=/scratch/lake WORKERS=16 deploy/slurm/run.sh
#
# To run two failed tasks of the scan again, and what follows:
#
#   sbatch --array=3,7 ... deploy/retry.sh bloomjoin scan ... --shard auto/16 ...
set -euo pipefail

lake=${LAKE:?the directory that holds ids/ and logs/}
last=$((${WORKERS:-16} - 1)) # arrays must start at 0, without gaps
here=$(cd "$(dirname "$0")/.." && pwd)

# submit NAME AFTER OPTION... -- ARGUMENT...: submits a step and prints its job ID.
submit() {
  local name=$1 after=$2 options=()
  shift 2
  while [[ $1 != -- ]]; do options+=("$1"); shift; done
  shift
  # A step whose predecessor failed is cancelled rather than left in the queue. A
  # preempted task runs again; what it has finished is kept.
  sbatch --parsable --job-name "bloomjoin-$name" --output "bloomjoin-$name-%A-%a.log" \
    --requeue --signal B:TERM@60 --cpus-per-task 4 --mem 8G \
    ${after:+--dependency "afterok:$after" --kill-on-invalid-dep yes} "${options[@]}" \
    "$here/retry.sh" bloomjoin "$@" --log-format json
}

build=$(submit build "" --array "0-$last" -- build --key user_id --shard auto -o "$lake/parts/" "$lake/ids/")
merge=$(submit merge "$build" -- merge --strict -o "$lake/users.bjf" "$lake/parts/")
scan=$(submit scan "$merge" --array "0-$last" -- scan --filter "$lake/users.bjf" --shard auto --no-commit -o "$lake/candidates/" "$lake/logs/")
commit=$(submit commit "$scan" -- commit "$lake/candidates/")
echo "build $build, merge $merge, scan $scan, commit $commit"
