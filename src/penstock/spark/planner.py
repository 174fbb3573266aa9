"""What one task decides for its query, batch by batch: how far to read, in how many parts, and when to commit.

Rules, each learned from a failure:
- a generation's first offsets are written once, before its first start, and always answered from there;
- a batch that the sink has a record for is answered with the recorded end, all its streams by one record, so that a lost
  checkpoint tail plans the same batch again (a sink that keeps the newest batch only: all of them as one, which it knows
  by its end);
- all reads of one topic in a batch get one end;
- two plans of the same batch (a job that writes several topics reads twice) are one plan;
- a frozen planner makes no new batch: it says `Drained`, and the query ends at a clean edge.
Called on the JVM's planner threads; never calls into Spark.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.core.balance.split import share_threads, split_ranges, take_ranges
from penstock.model.errors import ConflictError, PenstockError
from penstock.model.ids import Fence, TaskId, TopicPartition
from penstock.model.jobs import JobSpec
from penstock.model.records import BatchCommit, CommittedBatch, OffsetRange, Record
from penstock.spark.bus import Bus, Reading, read_dead_letters, renumbered
from penstock.spark.hub import run_name, stream_name
from penstock.spark.offsets import StreamId, check_forward, dump_offsets, ends_of, load_offsets

FACTS_KEPT = 64


class Drained(PenstockError):
    """The task was asked to stop at a batch's edge, and is there."""


@dataclass(frozen=True)
class BatchFacts:
    """What the planner knows of a batch and Spark does not say."""

    threads: int
    limit: int | None
    records_in: Mapping[str, int] = field(default_factory=dict)
    bytes_in: float = 0.0
    records_out: Mapping[str, int] = field(default_factory=dict)
    bytes_out: float = 0.0
    dead_letters: int = 0


@dataclass(frozen=True)
class _Written:
    """What the sink took of a batch."""

    records_out: Mapping[str, int]
    bytes_out: float
    dead_letters: int


@dataclass(frozen=True)
class TaskLayout:
    """Which run of which part of a job this is."""

    job: JobSpec
    task: TaskId
    fence: Fence
    streams: tuple[StreamId, ...]
    places: tuple[TopicPartition, ...]
    """The partitions that are this task's."""
    outputs: tuple[str, ...]
    dead_letters: Mapping[str, str]
    """Per input topic, where its dead letters go."""

    hooked: bool = True
    """Its sink tells of each batch's end: topics, and foreachBatch; other sinks don't."""

    @property
    def run(self) -> str:
        return run_name(self.task, self.fence)


@dataclass(frozen=True)
class TaskStart:
    """What a run begins with: its generation's first offsets, and what its sink held once older runs were fenced off."""

    initial: Mapping[TopicPartition, int]
    newest: CommittedBatch | None
    until: Mapping[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """Where partitions end for a run that works through what is there; elsewhere as they end when it begins."""
    next_batch: int = 0
    """The number of the batch that Spark plans next, by its checkpoint."""


class TaskPlanner:
    """The planner of one run of one task."""

    def __init__(
        self,
        layout: TaskLayout,
        bus: Bus,
        start: TaskStart,
        limit: Callable[[int], int | None],
    ) -> None:
        self.layout = layout
        self.error: BaseException | None = None
        self.threads = 1
        self.frozen = False
        self._bus, self._initial, self._limit = bus, dict(start.initial), limit
        self._lock = threading.RLock()
        self._round: dict[str, _TopicRound] = {}
        self._plans: dict[int, tuple[str, str, str]] = {}
        self._newest, self._until = start.newest, start.until
        self._next_batch = start.next_batch
        self._recalled: dict[int, bool] = {}
        """Streams that were told their recorded end of the next batch, and whether it moves them."""
        self._position: dict[TopicPartition, int] = self._begun()
        """How far each partition is planned."""
        self._planned: dict[int, dict[TopicPartition, tuple[int, int]]] = {}
        self._facts: OrderedDict[str, BatchFacts] = OrderedDict()
        self._written: OrderedDict[int, _Written] = OrderedDict()
        self._late_letters = 0
        """Dead letters of a sink without a commit of ours, which come after their batch: the next one that is looked at
        counts them."""
        self._final: dict[str, dict[int, int]] = {}

    def _begun(self) -> dict[TopicPartition, int]:
        """How far earlier runs of this generation came: by the sink's newest batch, else by what they published."""
        done: Mapping[TopicPartition, int] = {}
        if self._newest is not None and self._same_generation():
            done = self._newest.end
        elif self._initial:
            done = self._bus.topics.progress(self.layout.job.name, self.layout.job.input_topics)
        return {place: max(at, done.get(place, at)) for place, at in self._initial.items()}

    # -- the sink's own record -------------------------------------------------------------------------------------

    def _recorded_end(self, stream: int, start: Mapping[int, int]) -> dict[int, int] | None:
        """The end of the batch at hand as it was committed, when Spark's checkpoint has forgotten it."""
        newest = self._newest
        if newest is None or not self._same_generation() or self._next_batch > newest.batch_id:
            return None
        if len(self._recalled) == len(self.layout.streams) and not any(self._recalled.values()):
            return None  # it was committed without new records, and Spark makes no such batch now
        keeps, topic = self._bus.keeps_batches, self.layout.streams[stream].topic
        batch = self._bus.committed(self.layout.task, self._next_batch) if keeps else newest
        if batch is not None and batch.fence.generation == self.layout.fence.generation:
            begin = {p: batch.start.get(TopicPartition(topic, p), at) for p, at in start.items()}
            end = {p: batch.end.get(TopicPartition(topic, p), at) for p, at in start.items()}
            if begin == start or (not keeps and all(end[p] >= at for p, at in start.items())):
                self._recalled[stream] = end != start
                return end
        raise ConflictError(
            f"Task {self.layout.task}: its checkpoint stands at offsets that its sink holds no batch for; "
            f"the checkpoint was copied or restored, so start the job anew: `penstock reset {self.layout.job.name}`."
        )

    # -- the source ------------------------------------------------------------------------------------------------

    def reading(self, stream: int) -> Reading:
        """A stream as the run starts it."""
        topic = self.layout.streams[stream].topic
        first = {place.partition: at for place, at in self._initial.items() if place.topic == topic}
        limit = self._batch_limit(topic) if self._bus.spark_plans else None
        return Reading(stream_name(self.layout.run, stream), topic, first, self.threads, limit)

    def initial_offset(self, stream: int) -> str:
        return dump_offsets(self.layout.streams[stream], self.reading(stream).begin)

    def latest_offset(self, stream: int, start: str) -> str:
        identity = self.layout.streams[stream]
        at = load_offsets(identity, start)
        with self._lock:
            known = self._recorded_end(stream, at)
            if known is not None:
                return dump_offsets(identity, known)
            if self.frozen:
                raise Drained(f"Task {self.layout.task} is drained: its last batch is committed.")
            current = self._round.get(identity.topic)
            if current is None or current.start != at or stream in current.served:
                current = _TopicRound(at, self._end(identity, at))
                self._round[identity.topic] = current
            current.served.add(stream)
            return dump_offsets(identity, current.end)

    def _end(self, identity: StreamId, start: Mapping[int, int]) -> dict[int, int]:
        topic = identity.topic
        ends = self._bus.topics.end_offsets([topic])
        check_forward(identity, start, {p: ends.get(TopicPartition(topic, p), 0) for p in start})
        final = self._final.get(topic)
        begin = {TopicPartition(topic, p): at for p, at in start.items()}
        until = {
            place: min(ends.get(place, at), final[place.partition]) if final else ends.get(place, at)
            for place, at in begin.items()
        }
        taken = take_ranges(begin, until, self._limit_of(topic, begin, until))
        return {place.partition: at for place, at in taken.items()}

    def _limit_of(
        self, topic: str, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
    ) -> int | None:
        """This topic's share of what a batch may hold, by its share of the backlog over all topics read."""
        limit = self._batch_limit(topic)
        topics = {s.topic for s in self.layout.streams}
        if limit is None or len(topics) == 1:
            return limit
        others = [p for p in self._position if p.topic != topic]
        ends = self._bus.topics.end_offsets(sorted({p.topic for p in others}))
        elsewhere = sum(max(0, ends.get(p, 0) - self._position[p]) for p in others)
        here = sum(end[place] - at for place, at in start.items())
        return max(1, round(limit * here / (here + elsewhere))) if here + elsewhere else limit

    def _batch_limit(self, topic: str) -> int | None:
        """The least of what was measured and what the owner allows."""
        options = self.layout.job.options
        limits = [self._limit(self.threads), options.max_records_per_batch]
        most = options.max_bytes_per_batch or self._bus.batch_bytes
        if most is not None:
            mean_bytes = self._bus.record_bytes(topic)
            limits.append(max(1, int(most / mean_bytes)) if mean_bytes > 0 else None)
        return min((limit for limit in limits if limit is not None), default=None)

    def plan(self, stream: int, start: str, end: str) -> str:
        identity = self.layout.streams[stream]
        with self._lock:
            known = self._plans.get(stream)
            if known is not None and known[:2] == (start, end):
                return known[2]
            first, last = load_offsets(identity, start), load_offsets(identity, end)
            check_forward(identity, first, last)
            ranges = [OffsetRange(TopicPartition(identity.topic, p), at, last[p]) for p, at in first.items()]
            groups = split_ranges(
                ranges, self._share(stream, ranges), whole_partitions=self.layout.job.options.ordered
            )
            plan = self._bus.plan(groups)
            self._plans[stream] = (start, end, plan.text)
            self._planned[stream] = {r.place: (r.start, r.end) for r in ranges}
            self._position.update({r.place: r.end for r in ranges})
            planned = {identity.topic: sum(r.records for r in ranges)}
            limit = self._batch_limit(identity.topic)
            self._facts[end] = BatchFacts(self.threads, limit, planned, plan.bytes_in)
            while len(self._facts) > FACTS_KEPT:
                self._facts.popitem(last=False)
            return plan.text

    def _share(self, stream: int, ranges: list[OffsetRange]) -> int:
        """Threads of this stream in this batch, when several streams share the task's."""
        if len(self.layout.streams) == 1:
            return self.threads
        counts: list[int] = []
        for other in range(len(self.layout.streams)):
            topic = self.layout.streams[other].topic
            current = self._round.get(topic)
            counts.append(sum(current.end[p] - at for p, at in current.start.items()) if current else 0)
        counts[stream] = sum(r.records for r in ranges)
        return max(1, share_threads(counts, self.threads)[stream])

    def commit_read(self, stream: int, end: str, dead_letters: str) -> None:
        """A sink without a commit of ours: progress follows the batch, one batch behind until `settle`."""
        if self.layout.hooked:
            return
        with self._lock:
            self._append_letters(dead_letters, self._planned_ranges())
        self._bus.topics.commit_progress(self.layout.job.name, self._places(stream, end))

    def settle(self, ends: Sequence[str], dead_letters: str) -> None:
        """What `commit_read` would say after the last batch: where it ends in Spark's checkpoint, and its dead letters."""
        if self.layout.hooked:
            return
        done: dict[TopicPartition, int] = {}
        for stream, text in self.stream_ends(ends).items():
            done |= self._places(stream, text)
        with self._lock:
            self._append_letters(dead_letters, {p: (self._initial.get(p, 0), at) for p, at in done.items()})
        if done:
            self._bus.topics.commit_progress(self.layout.job.name, done)

    def stream_ends(self, ends: Sequence[str]) -> dict[int, str]:
        """Each stream's own among the offsets of a batch; other sources have some too."""
        return ends_of(self.layout.streams, ends)

    def offsets_in(self, stream: int, text: str) -> dict[int, int]:
        """Offsets per partition, as the checkpoint holds them for a stream."""
        return load_offsets(self.layout.streams[stream], text)

    def _places(self, stream: int, text: str) -> dict[TopicPartition, int]:
        topic = self.layout.streams[stream].topic
        return {TopicPartition(topic, p): at for p, at in self.offsets_in(stream, text).items()}

    def _append_letters(self, text: str, ranges: Mapping[TopicPartition, tuple[int, int]]) -> None:
        letters = self._letters(text, ranges)
        for place, letter in letters:
            self._bus.topics.append(place.topic, [letter], place.partition)
        self._late_letters += len(letters)

    def _planned_ranges(self) -> dict[TopicPartition, tuple[int, int]]:
        return {place: part for ranges in self._planned.values() for place, part in ranges.items()}

    def _letters(
        self, text: str, ranges: Mapping[TopicPartition, tuple[int, int]]
    ) -> list[tuple[TopicPartition, Record]]:
        """Dead letters of a batch, each with the partition of the dead-letter topic that takes it."""
        names = self.layout.dead_letters
        found = read_dead_letters(text, [s.topic for s in self.layout.streams], ranges)
        return [(TopicPartition(names[place.topic], place.partition), letter) for place, letter in found]

    def prepare_available_now(self, stream: int) -> None:
        topic = self.layout.streams[stream].topic
        ends = self._bus.topics.end_offsets([topic])
        with self._lock:
            self._final[topic] = {
                place.partition: min(at, self._until.get(place, at)) for place, at in ends.items()
            }

    # -- the sink --------------------------------------------------------------------------------------------------

    def commit_write(self, batch_id: int, messages: list[str], dead_letters: str) -> None:
        with self._lock:
            start, end = self._batch_offsets(batch_id)
            letters = self._letters(dead_letters, {p: (start[p], end[p]) for p in start})
            commit = BatchCommit(
                producer=str(self.layout.task),
                fence=self.layout.fence,
                batch_id=batch_id,
                start=start,
                end=end,
                reader=self.layout.job.name,
                records=tuple(letters),
            )
            done = self._bus.commit(commit, messages, self.layout.outputs)
            self._written[batch_id] = _Written(done.records_out, done.bytes_out, len(letters))
            while len(self._written) > FACTS_KEPT:
                self._written.popitem(last=False)
            self._plans.clear()
            self._planned.clear()
            self._next_batch = batch_id + 1
            self._recalled.clear()
            if not done.duplicate:
                self._newest = CommittedBatch(commit.producer, commit.fence, batch_id, start, end)
            elif self._newest is not None and not self._bus.keeps_batches:
                self._newest = renumbered(self._newest, commit)

    def wait_for_commit(self) -> None:
        """Until no commit is in flight."""
        with self._lock:
            return

    def _batch_offsets(self, batch_id: int) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Start and end of the batch over all streams; one without new records stands still."""
        known = self._bus.committed(self.layout.task, batch_id)
        if known is not None and known.fence.generation == self.layout.fence.generation:
            start, end = dict(known.start), dict(known.end)
        else:
            base = self._newest.end if self._newest is not None and self._same_generation() else self._initial
            start = {place: base.get(place, self._initial.get(place, 0)) for place in self.layout.places}
            end = dict(start)
        for place, (first, last) in self._planned_ranges().items():
            start[place], end[place] = first, last
        return start, end

    def _same_generation(self) -> bool:
        return self._newest is not None and self._newest.fence.generation == self.layout.fence.generation

    def abort_write(self, batch_id: int, messages: list[str]) -> None:
        if self._bus.committed(self.layout.task, batch_id) is None:
            self._bus.discard(messages)

    # -- for the probe ---------------------------------------------------------------------------------------------

    def facts_of(self, ends: list[str], batch_id: int) -> BatchFacts:
        """What is known of a finished batch, by the ends of the streams that moved; an unknown one has this moment's
        threads and no counts. All reads of one topic take the same records, which count once.
        """
        with self._lock:
            found = [self._facts[end] for end in ends if end in self._facts]
            written = self._written.pop(batch_id, _Written({}, 0.0, 0))
            late, self._late_letters = self._late_letters, 0
            return BatchFacts(
                threads=found[0].threads if found else self.threads,
                limit=found[0].limit if found else None,
                records_in={topic: n for facts in found for topic, n in facts.records_in.items()},
                bytes_in=sum(facts.bytes_in for facts in found),
                records_out=written.records_out,
                bytes_out=written.bytes_out,
                dead_letters=written.dead_letters + late,
            )

    def positions(self) -> dict[TopicPartition, int]:
        """How far the newest planned batch reaches."""
        with self._lock:
            return dict(self._position)


@dataclass
class _TopicRound:
    """One end for all reads of a topic, until each has asked."""

    start: Mapping[int, int]
    end: dict[int, int]
    served: set[int] = field(default_factory=set)
