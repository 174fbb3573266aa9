"""The command `penstock`."""

from __future__ import annotations

from penstock.app.clock import SystemClock
from penstock.app.services import AppServices
from penstock.interfaces.cli import build_app


def main() -> None:
    """What the installed script calls."""
    build_app(AppServices(), SystemClock())()


if __name__ == "__main__":
    main()
