package penstock;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.file.NoSuchFileException;
import java.util.Iterator;
import java.util.zip.CRC32;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Reads slices of segment files: {"root", "slices": [[file, position, length, crc32, base, from, to, partition, topic]]},
 * `from` and `to` being offsets. A chunk is checked against its CRC before a row of it is handed out.
 */
final class LogReader implements PartitionReader<ColumnarBatch> {
  private final String root;
  private final Iterator<JsonNode> slices;
  private final String[] columns;
  private final BufferAllocator allocator = ArrowUtils.rootAllocator().newChildAllocator("penstock-read", 0, Long.MAX_VALUE);

  private ArrowStreamReader stream;
  private long position;
  private long from;
  private long to;
  private int partition;
  private VectorSchemaRoot slice;
  private OnHeapColumnVector offsets;
  private ColumnarBatch batch;

  LogReader(String json, String[] columns) {
    this.columns = columns;
    try {
      JsonNode plan = PlannedStream.JSON.readTree(json);
      root = plan.get("root").asText();
      slices = plan.get("slices").elements();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public boolean next() throws IOException {
    release();
    while (true) {
      if (stream == null) {
        if (!slices.hasNext()) return false;
        open(slices.next());
      }
      if (position >= to || !stream.loadNextBatch()) {
        if (position < to) throw new IOException("segment ends at offset " + position + " but should reach " + to);
        stream.close();
        stream = null;
        continue;
      }
      VectorSchemaRoot rows = stream.getVectorSchemaRoot();
      long start = position;
      int count = rows.getRowCount();
      position += count;
      long first = Math.max(start, from);
      long last = Math.min(start + count, to);
      if (last <= first) continue;
      if (first != start || last != start + count) {
        slice = rows.slice((int) (first - start), (int) (last - first));
        rows = slice;
      }
      batch = batch(rows, first);
      return true;
    }
  }

  private void open(JsonNode at) throws IOException {
    byte[] bytes = read(at);
    stream = new ArrowStreamReader(new ByteArrayInputStream(bytes), allocator);
    position = at.get(4).asLong();
    from = at.get(5).asLong();
    to = at.get(6).asLong();
    partition = at.get(7).asInt();
  }

  private byte[] read(JsonNode at) throws IOException {
    String file = at.get(0).asText();
    byte[] bytes = new byte[at.get(2).asInt()];
    String what = "segment " + file + " (topic " + at.get(8).asText() + ", partition " + at.get(7).asInt() + ", offsets "
        + at.get(5).asLong() + " to " + at.get(6).asLong() + ")";
    try (RandomAccessFile open = new RandomAccessFile(root + "/" + file, "r")) {
      open.seek(at.get(1).asLong());
      open.readFully(bytes);
    } catch (EOFException e) {
      throw new IOException(what + " is torn: it is shorter than the index says; restore the file, or skip its offsets", e);
    } catch (java.io.FileNotFoundException | NoSuchFileException e) {
      throw new IOException(what + " is missing; restore the file, or skip its offsets", e);
    }
    CRC32 crc = new CRC32();
    crc.update(bytes);
    if (crc.getValue() != at.get(3).asLong()) {
      throw new IOException(what + " is corrupt: its checksum differs; restore the file, or skip its offsets");
    }
    return bytes;
  }

  private ColumnarBatch batch(VectorSchemaRoot rows, long first) {
    int count = rows.getRowCount();
    ColumnVector[] vectors = new ColumnVector[columns.length];
    for (int i = 0; i < columns.length; i++) {
      switch (columns[i]) {
        case "offset":
          offsets = new OnHeapColumnVector(count, DataTypes.LongType);
          for (int row = 0; row < count; row++) offsets.putLong(row, first + row);
          vectors[i] = offsets;
          break;
        case "partition":
          ConstantColumnVector constant = new ConstantColumnVector(count, DataTypes.IntegerType);
          constant.setInt(partition);
          vectors[i] = constant;
          break;
        default:
          vectors[i] = new ArrowColumnVector(rows.getVector(columns[i]));
      }
    }
    return new ColumnarBatch(vectors, count);
  }

  private void release() {
    if (offsets != null) offsets.close();
    if (slice != null) slice.close();
    offsets = null;
    slice = null;
  }

  @Override
  public ColumnarBatch get() {
    return batch;
  }

  @Override
  public void close() throws IOException {
    release();
    if (stream != null) stream.close();
    allocator.close();
  }
}
