"""What people type: commands over `ports.services.Services`, and how what they say is shown."""

from penstock.interfaces.cli.app import build_app

__all__ = ["build_app"]
