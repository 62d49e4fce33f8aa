"""Joins the log of each day, one task a day.

Variables of the scheduler and workers: LAKE is the directory or URL that holds
ids/ and logs/ (logs/dt=2024-01-02/...); answers/ is written.

Clearing a task, retries and backfills run the same command again: it does what is
new or changed in its day and touches no other day, so days may run in any order
and at the same time.
"""

import os
from datetime import datetime, timedelta
from functools import cached_property

from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.sdk import DAG, BaseOperator, CronDataIntervalTimetable
from airflow.sdk.exceptions import AirflowException, AirflowFailException

LAKE = os.environ.get("LAKE", "s3://example-bucket/lake")
RETRY_SECONDS = float(os.environ.get("RETRY_SECONDS", "300"))

# Bad data, a gate that is not met, wrong usage. All others may succeed another time.
WOULD_FAIL_AGAIN = (1, 2, 64)


class BloomjoinOperator(BaseOperator):
    """Runs the command, and decides by its exit code whether a retry makes sense."""

    template_fields = ("arguments",)

    def __init__(self, *, arguments, **kwargs):
        super().__init__(**kwargs)
        self.arguments = arguments

    @cached_property
    def process(self):
        return SubprocessHook()

    def execute(self, context):
        code = self.process.run_command(["bloomjoin", *self.arguments]).exit_code
        if code in WOULD_FAIL_AGAIN:
            raise AirflowFailException(f"bloomjoin: exit code {code}")
        if code != 0:
            raise AirflowException(f"bloomjoin: exit code {code}")

    def on_kill(self):
        self.process.send_sigterm()  # unfinished outputs are removed


with DAG(
    dag_id="bloomjoin_daily",
    # {{ ds }} is the day before the run: its log is complete.
    schedule=CronDataIntervalTimetable("30 1 * * *", timezone="UTC"),
    start_date=datetime(2024, 1, 1),
    catchup=True,
    max_active_runs=4,
    default_args={"retries": 3, "retry_delay": timedelta(seconds=RETRY_SECONDS)},
) as dag:
    BloomjoinOperator(
        task_id="join",
        arguments=[
            "join",
            "--log-format=json",
            f"--ids={LAKE}/ids/",
            "--on=user_id",
            f"--output={LAKE}/answers/",
            f"{LAKE}/logs/dt={{{{ ds }}}}/",
        ],
    )
