package penstock;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.Base64;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF6;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.util.CollectionAccumulator;

/**
 * Records that did not parse, on their way from executors to the commit of their batch.
 *
 * <p>A filter in the query hands them over (and drops them); an accumulator brings them home with the successful
 * attempt of their Spark task; the sink's commit takes them along. A recomputed stage may bring one twice: the planner
 * keeps one for each offset.
 */
public final class DeadLetters {
  private static final Map<String, CollectionAccumulator<String>> BOXES = new ConcurrentHashMap<>();

  private DeadLetters() {}

  /**
   * Registers the filter for one stream of a sink as a SQL function: always false. Arguments: partition, offset,
   * timestamp, key, value, reason.
   */
  public static void register(SparkSession session, String sink, String stream, String name) {
    SparkContext context = session.sparkContext();
    UDF6<Integer, Long, Long, byte[], byte[], String, Boolean> letter =
        new Letter(BOXES.computeIfAbsent(sink, made -> context.collectionAccumulator("penstock dead letters " + made)), stream);
    session.udf().register(name, functions.udf(letter, DataTypes.BooleanType).asNondeterministic());
  }

  /** All since the last call, as a JSON array of [stream, partition, offset, timestamp, key, value, reason]; bytes in base 64. */
  public static String drain(String sink) {
    CollectionAccumulator<String> box = BOXES.get(sink);
    if (box == null || box.isZero()) return "[]";
    String all = "[" + String.join(",", box.value()) + "]";
    box.reset();
    return all;
  }

  /** The task has ended. */
  public static void close(String sink) {
    BOXES.remove(sink);
  }

  public static final class Letter implements UDF6<Integer, Long, Long, byte[], byte[], String, Boolean> {
    private final CollectionAccumulator<String> box;
    private final String stream;

    Letter(CollectionAccumulator<String> box, String stream) {
      this.box = box;
      this.stream = stream;
    }

    @Override
    public Boolean call(Integer partition, Long offset, Long timestamp, byte[] key, byte[] value, String reason) {
      ArrayNode letter = PlannedStream.JSON.createArrayNode();
      letter.add(stream).add(partition).add(offset).add(timestamp).add(text(key)).add(text(value)).add(reason);
      box.add(letter.toString());
      return false;
    }

    private static String text(byte[] bytes) {
      return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
    }
  }
}
