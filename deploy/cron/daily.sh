#!/usr/bin/env bash
# Joins the log of a day, by default yesterday's in UTC. Run it again at any time: what
# is done is kept, what has changed is done again.
#
#   LAKE=/data/lake deploy/cron/daily.sh [2024-01-02]
set -euo pipefail

lake=${LAKE:?the directory that holds ids/ and logs/}
day=${1:-$(date --utc --date yesterday +%F)}
here=$(cd "$(dirname "$0")/.." && pwd)

# One run at a time: if yesterday's takes longer than a day, today's waits.
exec 9>"$lake/.daily.lock"
flock 9
exec "$here/retry.sh" bloomjoin join --quiet --log-format json \
  --ids "$lake/ids/" --on user_id -o "$lake/answers/" "$lake/logs/dt=$day/"
