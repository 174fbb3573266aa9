"""The runs of a project, and how each ended: read from the end of its journal, which may be long."""

from __future__ import annotations

from penstock.adapters.files.journal import JOURNAL, FileRuns, read_end
from penstock.model.status import RunStatus

_BLOCK_BYTES = 64 << 10


class ProjectRuns(FileRuns):
    """`ports.journal.Runs` of a project's folder."""

    def last_status(self, run: str) -> RunStatus | None:
        path = self.folder / run / JOURNAL
        size, block = path.stat().st_size, _BLOCK_BYTES
        while True:
            found = next(
                (entry for entry in reversed(read_end(path, block)) if isinstance(entry, RunStatus)), None
            )
            if found is not None or block >= size:
                return found
            block *= 4
