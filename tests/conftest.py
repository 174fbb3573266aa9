"""Settings of all tests: Hypothesis judges results, never how long a busy machine took for one."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("penstock", deadline=None)
settings.load_profile("penstock")
