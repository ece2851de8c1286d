"""One input on many machines: Ray distributes its shards, and Redis keeps them within one plan."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from _service import needed, redis, service

from langchain_svc import ChatSvc, Plan, SvcQuota, bulk

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
ray = needed("ray", extras="ray,redis")
SHARDS = 6  # more than workers, so that a slow one keeps nobody waiting
PLAN = Plan(requests_per_minute=600)  # or a documented one's name, such as "pro"


@ray.remote(max_retries=3)  # a shard whose machine was lost goes on where it was
def answer(shard: int, folder: Path, where: Mapping[str, str], storage: str) -> int:
    """Ask one shard. The folder is one that all machines see; so is the journal in it."""
    quota = SvcQuota(PLAN, storage=storage)
    with ChatSvc(model="svc-turbo", quota=quota, deadline=None, **where) as model:
        return bulk.run(
            model,
            folder / "prompts.jsonl",
            journal=folder / f"{shard}.journal",
            shard=f"{shard}/{SHARDS}",
        ).done


with redis() as storage, service() as where, tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    prompts = ({"id": n, "prompt": f"What is {n} * {n}?"} for n in range(48))
    (folder / "prompts.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in prompts)
    )

    ray.init(num_cpus=3, include_dashboard=False, logging_level="ERROR")
    done = ray.get(
        [answer.remote(n, folder, where, storage) for n in range(1, SHARDS + 1)]
    )
    ray.shutdown()

    found = [
        row
        for n in range(1, SHARDS + 1)
        for row in bulk.results(folder / f"{n}.journal")
    ]
    print(f"{sum(done)} answers from {len(done)} shards")
    print(*sorted(row["content"] for row in found)[:3], sep="\n")
