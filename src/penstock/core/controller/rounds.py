"""One round's columns, kept as they are until somebody reads a proposal: building a thousand sentences costs more
than deciding a thousand jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from penstock.core.controller.words import explain_job
from penstock.core.sizing.columns import CostColumns
from penstock.core.sizing.demand import Demand
from penstock.core.sizing.layout import Bools, Floats, Ints, Layout
from penstock.model.decisions import JobProposal


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """Which terms of the one controller a strategy has."""

    name: str
    batch_time: bool
    """h, barriers between stages, ceilings and units; without: Eq. 7 on the mean of instances' rates."""
    backlog: bool
    room: bool
    """Scale in only below `scale_in_share`; without: as soon as less suffices."""


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """What a round found and decided; arrays are by job, in the order of the layout."""

    terms: Terms
    layout: Layout
    now: float
    cost: CostColumns
    known_at: Floats
    selectivity: Floats
    observed: Floats
    demand: Demand
    handed_on: Floats
    """Most that each job can hand on, in records in."""
    seconds: Floats
    """The L that was used."""
    backlog: Floats
    correction: Floats
    threads: Ints
    wanted: Ints
    steady: Ints
    limit: Ints
    to: Ints
    code: Ints
    alerted: Bools
    """Jobs whose alert begins in this round."""
    why_aside: dict[int, str]
    """Jobs that are set aside, each with its reason."""


class Proposals(Sequence[JobProposal]):
    """A round's proposals, each built when it is read."""

    def __init__(self, held: Round) -> None:
        self._round = held

    def __len__(self) -> int:
        return len(self._round.layout)

    @overload
    def __getitem__(self, index: int) -> JobProposal: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[JobProposal]: ...
    def __getitem__(self, index: int | slice) -> JobProposal | Sequence[JobProposal]:
        if isinstance(index, slice):
            return tuple(explain_job(self._round, i) for i in range(len(self))[index])
        return explain_job(self._round, range(len(self))[index])

    def __iter__(self) -> Iterator[JobProposal]:
        return (explain_job(self._round, i) for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)  # pyright: ignore[reportUnknownArgumentType]

    def __hash__(self) -> int:
        return hash(tuple(p.job for p in self))

    def __repr__(self) -> str:
        return repr(tuple(self))
