"""Frozen values that every room speaks in: ids, quantities, specs, observations, decisions, events.

Rules: immutable, no behaviour beyond validation and derived values, imports nothing of ours.
"""
