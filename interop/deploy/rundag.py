"""Imports the DAGs of the folder as the scheduler does, and runs one for each day."""

import sys

import pendulum
from airflow.dag_processing.dagbag import DagBag

bag = DagBag()
assert not bag.import_errors, bag.import_errors
dag = bag.dags["bloomjoin_daily"]
assert dag.catchup and dag.get_task("join").retries == 3
for day in sys.argv[1:]:
    run = dag.test(logical_date=pendulum.parse(day, tz="UTC"))
    if str(run.state) != "success":
        sys.exit(f"{day}: {run.state}")
