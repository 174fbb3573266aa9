package penstock;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.channels.Channels;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;

/** One partition's records on their way into a segment: a complete Arrow IPC stream in memory. */
final class ChunkWriter {
  static final int ROWS_PER_BATCH = 8192;
  private static final int BYTES_PER_BATCH = 4 << 20;
  static final Schema SCHEMA = new Schema(List.of(
      Field.nullable("key", new ArrowType.Binary()),
      Field.nullable("value", new ArrowType.Binary()),
      new Field("timestamp", FieldType.notNullable(new ArrowType.Int(64, true)), null),
      new Field("headers", FieldType.nullable(new ArrowType.List()), List.of(
          new Field("item", FieldType.nullable(new ArrowType.Struct()), List.of(
              Field.nullable("key", new ArrowType.Utf8()), Field.nullable("value", new ArrowType.Binary())))))));

  private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
  private final VectorSchemaRoot root;
  private final VarBinaryVector keys;
  private final VarBinaryVector values;
  private final BigIntVector timestamps;
  private final ListVector headers;
  private final ArrowStreamWriter stream;
  private int rows;
  private int rowBytes;

  long records;
  long payloadBytes;
  long maxTimestamp = Long.MIN_VALUE;

  ChunkWriter(BufferAllocator allocator) throws IOException {
    root = VectorSchemaRoot.create(SCHEMA, allocator);
    keys = (VarBinaryVector) root.getVector(0);
    values = (VarBinaryVector) root.getVector(1);
    timestamps = (BigIntVector) root.getVector(2);
    headers = (ListVector) root.getVector(3);
    stream = new ArrowStreamWriter(root, null, Channels.newChannel(bytes));
    stream.start();
  }

  void add(byte[] key, byte[] value, long timestamp, ArrayData header) throws IOException {
    if (key == null) keys.setNull(rows);
    else keys.setSafe(rows, key);
    if (value == null) values.setNull(rows);
    else values.setSafe(rows, value);
    timestamps.setSafe(rows, timestamp);
    int size = (key == null ? 0 : key.length) + (value == null ? 0 : value.length) + addHeaders(header);
    payloadBytes += size;
    rowBytes += size;
    maxTimestamp = Math.max(maxTimestamp, timestamp);
    if (++rows == ROWS_PER_BATCH || rowBytes >= BYTES_PER_BATCH) flush();
  }

  private int addHeaders(ArrayData header) {
    if (header == null) {
      headers.setNull(rows);
      return 0;
    }
    StructVector items = (StructVector) headers.getDataVector();
    VarCharVector names = (VarCharVector) items.getChild("key");
    VarBinaryVector contents = (VarBinaryVector) items.getChild("value");
    int at = headers.startNewValue(rows);
    int size = 0;
    for (int i = 0; i < header.numElements(); i++) {
      InternalRow item = header.getStruct(i, 2);
      items.setIndexDefined(at + i);
      byte[] name = item.getUTF8String(0).getBytes();
      names.setSafe(at + i, name);
      size += name.length;
      if (item.isNullAt(1)) contents.setNull(at + i);
      else {
        byte[] content = item.getBinary(1);
        contents.setSafe(at + i, content);
        size += content.length;
      }
    }
    headers.endValue(rows, header.numElements());
    return size;
  }

  private void flush() throws IOException {
    root.setRowCount(rows);
    stream.writeBatch();
    records += rows;
    rows = 0;
    rowBytes = 0;
    root.clear();
  }

  /** Bytes held in memory, about. */
  long held() {
    return bytes.size() + rowBytes;
  }

  /** The finished chunk; this writer is done. */
  byte[] finish() throws IOException {
    if (rows > 0) flush();
    stream.end();
    byte[] chunk = bytes.toByteArray();
    close();
    return chunk;
  }

  void close() {
    stream.close();
    root.close();
  }
}
