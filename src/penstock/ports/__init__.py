"""Narrow doors to the world: what loops and the Spark room need of clocks, topics, metrics and actuators.

Protocols only. Each has one contract suite in tests/contracts that every adapter passes.
"""
