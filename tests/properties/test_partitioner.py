"""Keys go where Kafka's own partitioner sends them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.adapters.topics.partitioner import murmur2, partition_of, partitions_of

KAFKA_VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""Of `UtilsTest.testMurmur2` in Kafka's own tests (signed there)."""


@pytest.mark.parametrize(("key", "signed"), KAFKA_VECTORS.items())
def test_murmur2_is_kafkas(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed % (1 << 32)


@given(st.lists(st.none() | st.binary(max_size=40)), st.integers(1, 10_000), st.integers(0, 1 << 40))
def test_array_and_scalar_forms_agree(keys: list[bytes | None], partitions: int, first: int) -> None:
    placed = partitions_of(keys, partitions, first).tolist()
    turn = first
    for key, partition in zip(keys, placed, strict=True):
        if key is None:
            assert partition == turn % partitions
            turn += 1
        else:
            assert partition == partition_of(key, partitions)
