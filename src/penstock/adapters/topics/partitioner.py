"""Which partition a key belongs to: exactly Kafka's default partitioner, so that a topic may move between the two.

`toPositive(murmur2(key)) % partitions`, with murmur2 as in `org.apache.kafka.common.utils.Utils`. Records without a
key go round the partitions one by one. The array form computes many keys at once; both forms agree for every key.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np
from numpy.typing import NDArray

_SEED = 0x9747B28C
_M = 0x5BD1E995
_R = 24
_MASK = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2 of some bytes, as an unsigned number."""
    length = len(data)
    h = (_SEED ^ length) & _MASK
    words = length & ~3
    for at in range(0, words, 4):
        k = (int.from_bytes(data[at : at + 4], "little") * _M) & _MASK
        k = ((k ^ (k >> _R)) * _M) & _MASK
        h = ((h * _M) & _MASK) ^ k
    if length > words:
        h = ((h ^ int.from_bytes(data[words:], "little")) * _M) & _MASK
    h = ((h ^ (h >> 13)) * _M) & _MASK
    return h ^ (h >> 15)


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of one key."""
    return (murmur2(key) & _POSITIVE) % partitions


def partitions_of(keys: Sequence[bytes | None], partitions: int, next_keyless: int) -> NDArray[np.int64]:
    """Per key its partition; keys that are None take turns, beginning at `next_keyless`."""
    lengths = np.fromiter((-1 if key is None else len(key) for key in keys), dtype=np.int64, count=len(keys))
    placed = np.empty(len(keys), dtype=np.int64)
    for length in np.unique(lengths).tolist():
        mine = lengths == length
        if length < 0:
            placed[mine] = (next_keyless + np.arange(int(mine.sum()))) % partitions
            continue
        same = [key for key in compress(keys, mine.tolist()) if key is not None]
        placed[mine] = (_murmur2_same_length(same, length) & _POSITIVE) % partitions
    return placed


def _murmur2_same_length(keys: list[bytes], length: int) -> NDArray[np.int64]:
    """murmur2 of keys that all have `length` bytes, one column of four bytes at a time."""
    data = np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(len(keys), length)
    m = np.uint32(_M)
    h = np.full(len(keys), (_SEED ^ length) & _MASK, dtype=np.uint32)
    words = length & ~3
    columns = np.ascontiguousarray(data[:, :words]).view("<u4") if words else data[:, :0]
    for at in range(words // 4):
        k = columns[:, at].astype(np.uint32) * m
        k = (k ^ (k >> np.uint32(_R))) * m
        h = (h * m) ^ k
    if length > words:
        tail = np.zeros(len(keys), dtype=np.uint32)
        for at in range(words, length):
            tail |= data[:, at].astype(np.uint32) << np.uint32(8 * (at - words))
        h = (h ^ tail) * m
    h = (h ^ (h >> np.uint32(13))) * m
    return (h ^ (h >> np.uint32(15))).astype(np.int64)
