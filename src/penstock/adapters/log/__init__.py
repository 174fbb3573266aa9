"""The embedded log: durable topics in one folder of one host, for many processes at once, without a server."""

from penstock.adapters.log.log import EmbeddedLog

__all__ = ["EmbeddedLog"]
