package penstock;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.util.UUID;
import java.util.zip.CRC32;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.util.ArrowUtils;

/**
 * Writes one Spark partition's rows into one new segment file, a chunk for each topic partition (several, when they
 * outgrow memory). Names carry a UUID and are created exclusively, so that no attempt ever meets another's file.
 */
final class LogWriter implements DataWriter<InternalRow> {
  private static final long MEMORY = 32L << 20;
  private static final int ROW = 16;

  private final LogSink.Target target;
  private final BufferAllocator allocator = ArrowUtils.rootAllocator().newChildAllocator("penstock-write", 0, Long.MAX_VALUE);
  private final ChunkWriter[][] open;
  private final StringBuilder chunks = new StringBuilder();
  private final long now = System.currentTimeMillis();
  private long turn;
  private long records;
  private long held;
  private Path path;
  private FileChannel file;

  LogWriter(LogSink.Target target, long turn) {
    this.target = target;
    this.turn = turn;
    open = new ChunkWriter[target.topics.length][];
    for (int i = 0; i < open.length; i++) open[i] = new ChunkWriter[target.partitions[i]];
  }

  @Override
  public void write(InternalRow row) throws IOException {
    int topic = target.topic < 0 ? 0 : row.getInt(target.topic);
    byte[] key = target.key < 0 || row.isNullAt(target.key) ? null : row.getBinary(target.key);
    byte[] value = target.value < 0 || row.isNullAt(target.value) ? null : row.getBinary(target.value);
    long timestamp = target.timestamp < 0 || row.isNullAt(target.timestamp) ? now : row.getLong(target.timestamp);
    ArrayData headers = target.headers < 0 || row.isNullAt(target.headers) ? null : row.getArray(target.headers);
    int count = target.partitions[topic];
    int partition = key == null ? (int) Math.floorMod(turn++, (long) count) : Murmur2.partition(key, count);
    ChunkWriter chunk = open[topic][partition];
    if (chunk == null) open[topic][partition] = chunk = new ChunkWriter(allocator);
    chunk.add(key, value, timestamp, headers);
    records++;
    held += ROW + (key == null ? 0 : key.length) + (value == null ? 0 : value.length);
    if (held > MEMORY) spill();
  }

  /** Over the memory limit, the largest chunks go to the file as they are; their partitions begin others. */
  private void spill() throws IOException {
    while (true) {
      held = 0;
      int topic = 0;
      int partition = 0;
      long most = -1;
      for (int i = 0; i < open.length; i++) {
        for (int j = 0; j < open[i].length; j++) {
          if (open[i][j] == null) continue;
          long size = open[i][j].held();
          held += size;
          if (size > most) {
            most = size;
            topic = i;
            partition = j;
          }
        }
      }
      if (held <= MEMORY / 2) return;
      finish(topic, partition);
    }
  }

  private void finish(int topic, int partition) throws IOException {
    ChunkWriter chunk = open[topic][partition];
    open[topic][partition] = null;
    byte[] bytes = chunk.finish();
    if (file == null) create();
    long position = file.position();
    ByteBuffer buffer = ByteBuffer.wrap(bytes);
    while (buffer.hasRemaining()) file.write(buffer);
    CRC32 crc = new CRC32();
    crc.update(bytes);
    if (chunks.length() > 0) chunks.append(',');
    chunks.append('[').append(topic).append(',').append(partition).append(',').append(position).append(',').append(bytes.length)
        .append(',').append(crc.getValue()).append(',').append(chunk.records).append(',').append(chunk.payloadBytes)
        .append(',').append(chunk.maxTimestamp).append(']');
  }

  private void create() throws IOException {
    path = Paths.get(target.segments, target.producer + "-" + UUID.randomUUID() + ".arrow");
    file = FileChannel.open(path, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
  }

  @Override
  public WriterCommitMessage commit() throws IOException {
    for (int i = 0; i < open.length; i++) {
      for (int j = 0; j < open[i].length; j++) if (open[i][j] != null) finish(i, j);
    }
    if (file != null) {
      if (target.sync) file.force(false);
      file.close();
    }
    TaskContext context = TaskContext.get();
    if (context != null) context.taskMetrics().outputMetrics().setRecordsWritten(records);
    String name = path == null ? "" : Paths.get(target.root).relativize(path).toString();
    return new PlannedSink.Message("{\"file\":\"" + name + "\",\"chunks\":[" + chunks + "]}");
  }

  @Override
  public void abort() throws IOException {
    if (file != null) {
      file.close();
      Files.deleteIfExists(path);
    }
  }

  @Override
  public void close() {
    for (ChunkWriter[] topic : open) for (ChunkWriter chunk : topic) if (chunk != null) chunk.close();
    allocator.close();
  }
}
