"""The child's side of a trial: `python -m penstock.bench.child TRIAL FOLDER JSON`. Started by `children.py`."""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from functools import partial
from pathlib import Path

from penstock.bench.children import PROGRESS, RESULT


def main(trial: str, work: str, given: str) -> None:
    """Measure, tell, end: what runs still is ended with the process."""
    os.environ.setdefault("ARROW_NUM_THREADS", "1")
    threading.Thread(target=_end_with_parent, daemon=True).start()
    measure = importlib.import_module(f"penstock.bench.{trial}").measure
    result = measure(Path(work), json.loads(given), partial(_tell, PROGRESS))
    _tell(RESULT, result)
    os._exit(0)


def _tell(kind: str, value: object) -> None:
    print(json.dumps({kind: value}), flush=True)


def _end_with_parent() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        continue
    os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:4])
