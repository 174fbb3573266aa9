"""A job that is started anew reads again, or goes on with what comes, on every kind of topics."""

from __future__ import annotations

from collections import Counter

import pytest

from integration.copying import copy_job, rows
from penstock.app.resetting import StoredJob
from penstock.ports.services import Origin
from worlds import World

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("origin", ["earliest", "latest"])
@pytest.mark.parametrize(
    ("where", "exactly_once"),
    [
        ("world", False),
        pytest.param("kafka", False, marks=pytest.mark.kafka),
        pytest.param("kafka", True, marks=pytest.mark.kafka),
    ],
)
def test_a_job_begins_anew_where_it_is_told(
    request: pytest.FixtureRequest, prefix: str, where: str, exactly_once: bool, origin: Origin
) -> None:
    world: World = request.getfixturevalue(where)
    options = {"exactly_once": True} if exactly_once else {}
    codes = world.run(lambda: copy_job(prefix, **options))
    world.produce(f"{prefix}.in", rows(0, 50))
    world.settle(30.0)
    assert world.host.drain(30.0)
    world.produce(f"{prefix}.in", rows(50, 60))
    stored = StoredJob(codes[0].spec, world.topics, world.folder / "checkpoints")
    assert [(held.read, held.kept) for held in stored.remembers().inputs] == [(50, 60)]
    stored.carry_out(origin)
    world.restart(codes)
    world.produce(f"{prefix}.in", rows(60, 70))
    world.settle(30.0)
    assert world.events == []
    (task,) = world.host.tasks(f"{prefix}-copy")
    assert task.planner.layout.fence.generation == 2
    found = Counter(row["id"] for row in world.rows(f"{prefix}.out"))
    again = Counter(range(70)) if origin == "earliest" else Counter(range(60, 70))
    assert found == Counter(range(50)) + again
