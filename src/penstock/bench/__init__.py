"""Measured comparisons: each beside a peer that had the same work in the same minute, with a goal where one is promised.

Rules: contenders take turns, what is shown is a median, and a goal that is not met is said. Knows nothing of Spark.
"""
