"""One input on many machines: Ray distributes its shards, and Redis keeps them within one plan."""

import json
import os
import tempfile
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from _service import needed, redis, service

from langchain_svc import ChatSvc, Plan, SvcQuota, bulk

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
ray = needed("ray", extras="ray,redis")
SHARDS = 6  # more than workers, so that a slow one keeps nobody waiting
PLAN = Plan(requests_per_minute=600)  # or a documented one's name, such as "pro"


@ray.remote(max_retries=3)  # a shard whose machine was lost goes on where it was
def answer(shard: int, folder: Path, where: Mapping[str, str], storage: str) -> int:
    """Ask every sixth row. The folder is one that all machines see; so is the journal in it."""
    quota = SvcQuota(PLAN, storage=storage)
    with (
        (folder / "prompts.jsonl").open() as lines,
        ChatSvc(model="svc-turbo", quota=quota, deadline=None, **where) as model,
    ):
        rows = (json.loads(line) for line in islice(lines, shard, None, SHARDS))
        return bulk.run(model, rows, journal=folder / f"{shard}.journal").done


with redis() as storage, service() as where, tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    prompts = ({"id": n, "prompt": f"What is {n} * {n}?"} for n in range(48))
    (folder / "prompts.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in prompts)
    )

    ray.init(num_cpus=3, include_dashboard=False, logging_level="ERROR")
    done = ray.get(
        [answer.remote(shard, folder, where, storage) for shard in range(SHARDS)]
    )
    ray.shutdown()

    found = [
        row for n in range(SHARDS) for row in bulk.results(folder / f"{n}.journal")
    ]
    print(f"{sum(done)} answers from {len(done)} shards")
    print(*sorted(row["content"] for row in found)[:3], sep="\n")
