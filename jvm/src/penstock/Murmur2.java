package penstock;

/** Kafka's default partitioner: the same key lands in the same partition in both kinds of topic. */
final class Murmur2 {
  private Murmur2() {}

  static int partition(byte[] key, int partitions) {
    return (hash(key) & 0x7fffffff) % partitions;
  }

  static int hash(byte[] data) {
    int length = data.length;
    int h = 0x9747b28c ^ length;
    int whole = length / 4;
    for (int i = 0; i < whole; i++) {
      int at = i * 4;
      int k = (data[at] & 0xff) | ((data[at + 1] & 0xff) << 8) | ((data[at + 2] & 0xff) << 16) | ((data[at + 3] & 0xff) << 24);
      k *= 0x5bd1e995;
      k ^= k >>> 24;
      k *= 0x5bd1e995;
      h *= 0x5bd1e995;
      h ^= k;
    }
    int tail = length & ~3;
    switch (length % 4) {
      case 3:
        h ^= (data[tail + 2] & 0xff) << 16;
      case 2:
        h ^= (data[tail + 1] & 0xff) << 8;
      case 1:
        h ^= data[tail] & 0xff;
        h *= 0x5bd1e995;
      default:
    }
    h ^= h >>> 13;
    h *= 0x5bd1e995;
    return h ^ (h >>> 15);
  }
}
