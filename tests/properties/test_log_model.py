"""The embedded log against a model made of lists: whatever is done to it, readers see what the model holds."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.adapters.log import EmbeddedLog
from penstock.adapters.log.upkeep import UpkeepSettings
from penstock.adapters.topics.partitioner import partition_of
from penstock.model.errors import ConflictError, FencedError, MissingError
from penstock.model.ids import Fence, TopicPartition
from penstock.model.records import BatchCommit, OffsetRange, Record

TOPICS = {"a": 1, "b": 3}
KEEP_MS = 50_000
"""Of topic `b`; `a` keeps all."""

keys = st.none() | st.binary(max_size=6)
headers = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2).map(tuple)
records = st.builds(
    Record,
    keys,
    st.none() | st.binary(max_size=20),
    st.integers(min_value=-5, max_value=1_100_000),
    st.just(()) | headers,
)
batches = st.lists(records, max_size=12)
places = st.sampled_from([TopicPartition(t, n) for t, count in TOPICS.items() for n in range(count)])


class LogAgainstLists(RuleBasedStateMachine):
    @initialize()
    def make(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-model-"))
        self.now = 1000.0
        self.log = self.open()
        self.held: dict[TopicPartition, list[Record]] = {}
        self.begin: dict[TopicPartition, int] = {}
        for topic, partitions in TOPICS.items():
            limits = {"retention.ms": str(KEEP_MS)} if topic == "b" else {}
            assert self.log.create(topic, partitions, limits)
            for n in range(partitions):
                self.held[TopicPartition(topic, n)] = []
                self.begin[TopicPartition(topic, n)] = 0
        self.read_until: dict[TopicPartition, int] = {}
        self.fence = Fence(1, 1)
        self.next_batch = 0
        self.source: dict[TopicPartition, int] = {TopicPartition("a", 0): 0}
        self.last: BatchCommit | None = None

    def open(self) -> EmbeddedLog:
        quick = UpkeepSettings(
            merge_target_bytes=1 << 16, grace_seconds=5.0, retention_seconds=0.0, orphan_seconds=0.0
        )
        return EmbeddedLog(self.folder, durable=False, clock=lambda: self.now, upkeep=quick)

    @rule(topic=st.sampled_from(sorted(TOPICS)), batch=batches)
    def append_by_key(self, topic: str, batch: list[Record]) -> None:
        ranges = self.log.append(topic, batch)
        assert sum(r.records for r in ranges.values()) == len(batch)
        found = {place: self.log.read(place, r.start, r.records) for place, r in ranges.items()}
        for place, r in ranges.items():
            assert r.start == len(self.held[place])
            self.held[place] += [stored.record for stored in found[place]]
        for place, stored in found.items():
            for one in stored:
                if one.record.key is not None:
                    assert place.partition == partition_of(one.record.key, TOPICS[topic])
        came = [s.record for stored in found.values() for s in stored]
        assert sorted(map(repr, came)) == sorted(map(repr, batch))

    @rule(place=places, batch=batches)
    def append_to(self, place: TopicPartition, batch: list[Record]) -> None:
        self.log.append(place.topic, batch, place.partition)
        self.held[place] += batch

    @rule(place=places, batch=batches, times=st.integers(8, 20))
    def append_often(self, place: TopicPartition, batch: list[Record], times: int) -> None:
        """Enough small chunks to be merged."""
        for _ in range(times):
            self.append_to(place, batch)

    @rule(came=st.lists(st.tuples(places, records), max_size=6), moved=st.integers(0, 3), reads=st.booleans())
    def commit(self, came: list[tuple[TopicPartition, Record]], moved: int, reads: bool) -> None:
        end = {place: offset + moved for place, offset in self.source.items()}
        reader = "reader" if reads else ""
        batch = BatchCommit(
            "job-0", self.fence, self.next_batch, dict(self.source), end, reader, records=tuple(came)
        )
        result = self.log.commit(batch)
        assert not result.duplicate
        assert result.records == len(came)
        for place, record in came:
            self.held[place].append(record)
        if reader:
            whole = self.last is None or self.last.fence.generation != self.fence.generation
            self.read_until.update({p: e for p, e in end.items() if whole or e != self.source[p]})
        self.last, self.source, self.next_batch = batch, end, self.next_batch + 1

    @precondition(lambda self: self.last is not None)
    @rule()
    def commit_again(self) -> None:
        assert self.last is not None
        if self.last.fence.generation == self.fence.generation:
            again = BatchCommit(
                "job-0",
                self.fence,
                self.last.batch_id,
                self.last.start,
                self.last.end,
                "",
                records=self.last.records,
            )
            assert self.log.commit(again).duplicate
            other = {place: offset + 1 for place, offset in self.last.end.items()}
            with pytest.raises(ConflictError):
                self.log.commit(BatchCommit("job-0", self.fence, self.last.batch_id, self.last.start, other))

    @rule(generation=st.booleans())
    def take_over(self, generation: bool) -> None:
        old = self.fence
        self.fence = Fence(old.generation + 1, 1) if generation else Fence(old.generation, old.epoch + 1)
        self.log.open_producer("job-0", self.fence)
        if generation:
            self.next_batch = 0
        with pytest.raises(FencedError):
            self.log.commit(BatchCommit("job-0", old, self.next_batch, self.source, self.source))

    @rule(place=places, share=st.floats(0, 1))
    def say_progress(self, place: TopicPartition, share: float) -> None:
        offset = int(share * len(self.held[place]))
        self.log.commit_progress("reader", {place: offset})
        self.read_until[place] = offset

    @rule(steps=st.integers(1, 4), passes=st.floats(0, 20))
    def keep_house(self, steps: int, passes: float) -> None:
        self.now += passes
        for _ in range(steps):
            assert not self.log.maintain().problems
        self.learn_begins(forced=False)

    @rule(topic=st.sampled_from([*sorted(TOPICS), None]))
    def force_retention(self, topic: str | None) -> None:
        self.log.retain(topic, force=True)
        self.learn_begins(forced=True)

    @rule()
    def reopen(self) -> None:
        self.log.close()
        self.log = self.open()

    @rule()
    def verify(self) -> None:
        assert list(self.log.verify()) == []

    def learn_begins(self, forced: bool) -> None:
        """What retention took must have been allowed to go."""
        for topic in TOPICS:
            for place, begin in self.log.begin_offsets([topic]).items():
                before = self.begin[place]
                assert before <= begin <= len(self.held[place])
                if begin > before:
                    gone = self.held[place][before:begin]
                    assert all(r.timestamp_ms < self.now * 1000 - KEEP_MS for r in gone)
                    if not forced:
                        assert begin <= self.read_until.get(place, begin)
                self.begin[place] = begin

    @invariant()
    def same_as_lists(self) -> None:
        if not hasattr(self, "log"):
            return
        assert self.log.topics() == sorted(TOPICS)
        ends = self.log.end_offsets(sorted(TOPICS))
        for place, held in self.held.items():
            assert ends[place] == len(held)
            begin = self.begin[place]
            stored = self.log.read(place, 0, len(held) + 1)
            assert [s.offset for s in stored] == list(range(begin, len(held)))
            assert [s.record for s in stored] == held[begin:]
            self.check_located(place, begin, len(held))
        assert self.log.progress("reader", sorted({p.topic for p in self.read_until})) == self.read_until

    def check_located(self, place: TopicPartition, begin: int, end: int) -> None:
        if end > begin:
            chunks = self.log.locate([OffsetRange(place, begin, end)])[0]
            assert chunks[0].base_offset == begin
            assert sum(c.records for c in chunks) == end - begin
        if begin > 0:
            with pytest.raises(MissingError):
                self.log.locate([OffsetRange(place, begin - 1, end)])

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.close()
            shutil.rmtree(self.folder)


LogAgainstLists.TestCase.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestLogAgainstLists = LogAgainstLists.TestCase
