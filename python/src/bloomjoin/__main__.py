"""``python -m bloomjoin`` is the command ``bloomjoin``."""

from bloomjoin._process import main

main()
