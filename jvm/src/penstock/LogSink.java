package penstock;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Rows into segment files of the embedded log, which the planner commits. */
final class LogSink extends PlannedSink {
  private final Target target;

  LogSink(CaseInsensitiveStringMap options, StructType schema) {
    super(options.get("sink"));
    target = new Target(options, schema);
  }

  /** What an executor needs to know to write. */
  static final class Target implements Serializable {
    final String root;
    final String segments;
    final String producer;
    final boolean sync;
    final String[] topics;
    final int[] partitions;
    final int topic;
    final int key;
    final int value;
    final int timestamp;
    final int headers;

    Target(CaseInsensitiveStringMap options, StructType schema) {
      root = options.get("root");
      segments = options.get("segments");
      producer = options.get("producer");
      sync = options.getBoolean("sync", false);
      try {
        JsonNode list = PlannedStream.JSON.readTree(options.get("topics"));
        topics = new String[list.size()];
        partitions = new int[list.size()];
        for (int i = 0; i < topics.length; i++) {
          topics[i] = list.get(i).get("name").asText();
          partitions[i] = list.get(i).get("partitions").asInt();
        }
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      String[] names = schema.fieldNames();
      topic = Arrays.asList(names).indexOf("topic");
      key = Arrays.asList(names).indexOf("key");
      value = Arrays.asList(names).indexOf("value");
      timestamp = Arrays.asList(names).indexOf("timestamp");
      headers = Arrays.asList(names).indexOf("headers");
    }
  }

  @Override
  public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
    return new Writers(target);
  }

  private static final class Writers implements StreamingDataWriterFactory {
    private final Target target;

    Writers(Target target) {
      this.target = target;
    }

    @Override
    public DataWriter<InternalRow> createWriter(int partition, long task, long batch) {
      return new LogWriter(target, partition + batch);
    }
  }
}
