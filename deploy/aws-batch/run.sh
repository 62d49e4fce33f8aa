#!/usr/bin/env bash
# Registers the job definition and submits the steps build, merge, scan and commit, each
# after the one before. A job that depends on an array waits for all its tasks.
#
#   deploy/aws-batch/run.sh
set -euo pipefail
cd "$(dirname "$0")"

aws batch register-job-definition --cli-input-json file://job-definition.json >/dev/null

# submit STEP [AFTER]: submits a step and prints its job ID.
submit() {
  aws batch submit-job --cli-input-json "file://$1.json" ${2:+--depends-on "jobId=$2"} --query jobId --output text
}

build=$(submit build)
merge=$(submit merge "$build")
scan=$(submit scan "$merge")
commit=$(submit commit "$scan")
echo "build $build, merge $merge, scan $scan, commit $commit"
