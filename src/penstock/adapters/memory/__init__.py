"""Technology that is no technology: ports kept in memory, for simulations and tests."""

from penstock.adapters.memory.topics import MemoryTopics

__all__ = ["MemoryTopics"]
