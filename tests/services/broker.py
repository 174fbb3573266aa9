"""The broker that tests start is the one that benchmarks start."""

from penstock.spark.trials.broker import Broker, NoBroker, broker_jars

__all__ = ["Broker", "NoBroker", "broker_jars"]
