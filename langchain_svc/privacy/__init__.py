"""Private runs, and pseudonyms: what may stand in records, and what may leave."""

from .masks import mask, masked
from .private_runs import PrivateRun, refuse_cache

private_run = PrivateRun  # as the core's protocol names it
