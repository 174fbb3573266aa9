package penstock;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.kafka010.KafkaBatchInputPartition;
import org.apache.spark.sql.kafka010.KafkaBatchReaderFactory$;
import org.apache.spark.sql.kafka010.KafkaOffsetRange;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Kafka read by the connector's own reader, planned by Python, and written with commits that Python hears of: format
 * "penstock.KafkaSource". Option `client` (JSON) holds the settings of the Kafka client; reading needs `stream`, writing
 * `sink`. A Spark partition is any list of {"topic", "partition", "from", "to"}.
 */
public final class KafkaSource implements TableProvider {
  static final StructType SCHEMA = new StructType()
      .add("key", "binary")
      .add("value", "binary")
      .add("topic", "string")
      .add("partition", "int")
      .add("offset", "long")
      .add("timestamp", "timestamp")
      .add("timestampType", "int")
      .add("headers", "array<struct<key:string,value:binary>>");
  private static final long POLL_TIMEOUT_MS = 120_000;

  /** A record that takes longer than this was waited for at the broker. */
  private static final long LONG_POLL_NS = 1_000_000;

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return SCHEMA;
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return new KafkaTable();
  }

  /** Why this session cannot use Kafka ("missing: ..."), or not the connector's reader as planned here ("other: ..."); else empty. */
  public static String lacks() {
    try {
      Class.forName("org.apache.kafka.clients.producer.KafkaProducer");
      Class.forName("org.apache.spark.sql.kafka010.KafkaSourceProvider");
    } catch (ClassNotFoundException | LinkageError e) {
      return "missing: " + e.getMessage();
    }
    try {
      Chain.one(new TopicPartition("none", 0), 0, 0, Map.of());
      KafkaBatchReaderFactory$.class.getMethod("createReader", InputPartition.class);
      return "";
    } catch (NoSuchMethodException | LinkageError e) {
      return "other: " + e.getClass().getSimpleName() + " " + e.getMessage();
    }
  }

  static Map<String, Object> settings(String client) {
    try {
      Map<String, Object> settings = new HashMap<>();
      PlannedStream.JSON.readTree(client).fields().forEachRemaining(e -> settings.put(e.getKey(), e.getValue().asText()));
      return settings;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static final class KafkaTable extends PlannedTable {
    KafkaTable() {
      super("penstock kafka", SCHEMA, info -> new KafkaSink(info.options(), info.schema()));
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      String stream = options.get("stream");
      Readers readers = new Readers(options.get("client"));
      return () -> new Scan() {
        @Override
        public StructType readSchema() {
          return SCHEMA;
        }

        @Override
        public MicroBatchStream toMicroBatchStream(String checkpoint) {
          return new PlannedStream(stream, readers, PlannedTable.Part::new);
        }
      };
    }
  }

  private static final class Readers implements PartitionReaderFactory {
    private final String client;

    Readers(String client) {
      this.client = client;
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      try {
        return new Chain(PlannedStream.JSON.readTree(((PlannedTable.Part) partition).json).elements(), settings(client));
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  /** Spark's reader for one range after another. */
  private static final class Chain implements PartitionReader<InternalRow> {
    private final Iterator<JsonNode> ranges;
    private final Map<String, Object> client;
    private final PenstockPlugin.Waits waits = PenstockPlugin.running();
    private PartitionReader<InternalRow> current;

    Chain(Iterator<JsonNode> ranges, Map<String, Object> client) {
      this.ranges = ranges;
      this.client = client;
    }

    /** One range as the connector takes it: with its headers, and with lost records as an error. */
    static InputPartition one(TopicPartition place, long from, long to, Map<String, Object> client) {
      KafkaOffsetRange offsets = new KafkaOffsetRange(place, from, to, scala.Option.empty());
      return new KafkaBatchInputPartition(offsets, client, POLL_TIMEOUT_MS, true, true);
    }

    @Override
    public boolean next() throws IOException {
      while (true) {
        if (current == null) {
          if (!ranges.hasNext()) return false;
          JsonNode range = ranges.next();
          TopicPartition place = new TopicPartition(range.get("topic").asText(), range.get("partition").asInt());
          current = KafkaBatchReaderFactory$.MODULE$.createReader(
              one(place, range.get("from").asLong(), range.get("to").asLong(), client));
        }
        long before = System.nanoTime();
        boolean more = current.next();
        long took = System.nanoTime() - before;
        if (took > LONG_POLL_NS) waits.poll += took;
        if (more) return true;
        current.close();
        current = null;
      }
    }

    @Override
    public InternalRow get() {
      return current.get();
    }

    @Override
    public void close() throws IOException {
      if (current != null) current.close();
    }
  }
}
