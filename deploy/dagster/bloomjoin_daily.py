"""Joins the log of each day: an asset with a partition a day.

The environment variable LAKE is the directory or URL that holds ids/ and logs/
(logs/dt=2024-01-02/...); answers/ is written. A partition may be materialized
again at any time, and several at the same time.
"""

import json
import os
import subprocess

import dagster

LAKE = os.environ.get("LAKE", "s3://example-bucket/lake")
RETRY_SECONDS = float(os.environ.get("RETRY_SECONDS", "300"))

# Bad data, a gate that is not met, wrong usage. All others may succeed another time.
WOULD_FAIL_AGAIN = (1, 2, 64)


@dagster.asset(
    partitions_def=dagster.DailyPartitionsDefinition(start_date="2024-01-01"),
    retry_policy=dagster.RetryPolicy(max_retries=3, delay=RETRY_SECONDS, backoff=dagster.Backoff.EXPONENTIAL),
)
def answers(context: dagster.AssetExecutionContext) -> dagster.MaterializeResult:
    """Rows of the log whose user is in the ID set."""
    run = subprocess.run(
        [
            "bloomjoin", "join", "--json", "--log-format=json",
            f"--ids={LAKE}/ids/", "--on=user_id",
            f"--output={LAKE}/answers/", f"{LAKE}/logs/dt={context.partition_key}/",
        ],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    if run.returncode != 0:
        raise dagster.Failure(
            f"bloomjoin: exit code {run.returncode}", allow_retries=run.returncode not in WOULD_FAIL_AGAIN
        )
    figures = json.loads(run.stdout)
    names = ("already_done", "rows_in", "rows_out", "bytes_read", "seconds")
    return dagster.MaterializeResult(metadata={name: figures[name] for name in names if name in figures})


daily = dagster.build_schedule_from_partitioned_job(
    dagster.define_asset_job("bloomjoin_daily", selection=[answers]), hour_of_day=1, minute_of_hour=30
)

defs = dagster.Definitions(assets=[answers], schedules=[daily])
