"""pyarrow.dataset in both directions: the log is a dataset, and the answer becomes one."""

import tempfile

import bloomjoin
import pyarrow.dataset as ds
from flights import LOGS, TEXAS, expected


def main() -> None:
    log = ds.dataset([ds.dataset(LOGS, format="parquet", exclude_invalid_files=True)])
    ...


if __name__ == "__main__":
    main()
