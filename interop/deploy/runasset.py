"""Imports the definitions, and materializes the asset for each day."""

import sys
from pathlib import Path

import dagster

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "deploy" / "dagster"))
from bloomjoin_daily import answers, defs  # noqa: E402

dagster.Definitions.validate_loadable(defs)
with dagster.DagsterInstance.ephemeral() as instance:
    for day in sys.argv[1:]:
        run = dagster.materialize([answers], partition_key=day, instance=instance, raise_on_error=False)
        if not run.success:
            kinds = [e.event_type_value for e in run.all_events]
            print(f"{day}: failed after {1 + kinds.count('STEP_RESTARTED')} attempt")
            sys.exit(1)
