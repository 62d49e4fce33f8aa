"""What auto chooses, by sizes that are known before any row is read."""

from __future__ import annotations

from ._plain import Unsuitable

# Bytes of the log for each core, below which stages cost more than Spark's shuffle. Tasks that
# join whole are faster from the first row on.
_SMALL = 320 << 20

# Bytes a second that one core scans, reads as IDs, and shuffles, and the seconds of stages: on
# one machine, for ten columns of Snappy.
_SCANNED, _IDS, _SHUFFLED, _STAGES = 1.1e9, 5e8, 3e7, 2.0


class NotWorth(Unsuitable):
    """Spark alone is expected to be faster."""


def check_staged(cores: int, log: int) -> None:
    """Raise NotWorth if a log of so many bytes is small."""
    if log < _SMALL * cores:
        raise NotWorth(f"the log is small: {log >> 20} MiB, want {_SMALL * cores >> 20} MiB")


def check_ids(cores: int, log: int, ids: int, *, staging: bool) -> None:
    """Raise NotWorth or Unsuitable if it is slow that each core reads all bytes of the IDs.

    A shuffle moves both sides; with a staging, tasks divide the IDs and merge filters.
    """
    whole = log / (_SCANNED * cores) + ids / _IDS
    staged = log / (_SCANNED * cores) + 3 * ids / (_IDS * cores) + _STAGES
    why = f"each core would read {ids >> 20} MiB of IDs"
    if staging and staged < whole:
        raise Unsuitable(why)
    if (log + ids) / (_SHUFFLED * cores) < whole:
        raise NotWorth(why)
