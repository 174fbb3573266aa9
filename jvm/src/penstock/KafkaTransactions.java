package penstock;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/**
 * Kafka transactions of this driver, one producer for each run of a task. When one begins and what it records is Python's.
 *
 * <p>`open` ends every older producer of the same id, here or elsewhere, and aborts what it left open; the broker then
 * refuses its commits.
 */
public final class KafkaTransactions {
  private static final Map<String, KafkaProducer<byte[], byte[]>> PRODUCERS = new ConcurrentHashMap<>();
  private static final Map<String, List<byte[]>> HELD = new ConcurrentHashMap<>();

  private KafkaTransactions() {}

  /**
   * What a batch made, until `send` takes it. It outlives the call that Spark waits in: a query that is stopped leaves
   * that call at once, while the commit it began goes on, and must not find its rows gone.
   */
  static void hold(String run, WriterCommitMessage[] messages) {
    List<byte[]> rows = new ArrayList<>();
    for (WriterCommitMessage message : messages) if (message instanceof KafkaSink.Wrote) rows.add(((KafkaSink.Wrote) message).rows);
    HELD.put(run, rows);
  }

  /** A new producer with a transactional id, for one run. */
  public static void open(String run, String id, String client) {
    Map<String, Object> settings = KafkaSource.settings(client);
    settings.put("transactional.id", id);
    KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings);
    try {
      producer.initTransactions();
    } catch (RuntimeException e) {
      producer.close(Duration.ZERO);
      throw e;
    }
    PRODUCERS.put(run, producer);
  }

  public static void close(String run) {
    HELD.remove(run);
    KafkaProducer<byte[], byte[]> producer = PRODUCERS.remove(run);
    if (producer != null) producer.close(Duration.ZERO);
  }

  private static KafkaProducer<byte[], byte[]> of(String run) {
    KafkaProducer<byte[], byte[]> producer = PRODUCERS.get(run);
    if (producer == null) throw new IllegalStateException("the run " + run + " has ended");
    return producer;
  }

  /** Begins a transaction and puts a consumer group's offsets into it (JSON [[topic, partition, offset, metadata]]). */
  public static void mark(String run, String group, String offsets) throws IOException {
    KafkaProducer<byte[], byte[]> producer = of(run);
    producer.beginTransaction();
    Map<TopicPartition, OffsetAndMetadata> marker = new HashMap<>();
    for (JsonNode each : PlannedStream.JSON.readTree(offsets))
      marker.put(new TopicPartition(each.get(0).asText(), each.get(1).asInt()),
          new OffsetAndMetadata(each.get(2).asLong(), each.get(3).asText()));
    producer.sendOffsetsToTransaction(marker, new ConsumerGroupMetadata(group));
  }

  /**
   * The same with what the run's sink holds, and letters (JSON [[topic, partition, key, value, timestamp, [[header,
   * value]]]], bytes in base 64). Returns when the broker has all of it; nothing of it can be seen yet.
   */
  public static void send(String run, String group, String offsets, String letters) throws IOException {
    mark(run, group, offsets); // first: a producer that was fenced off is refused before anything is sent
    List<byte[]> held = HELD.remove(run);
    if (held == null) throw new IllegalStateException("the rows of the batch are not there any more");
    KafkaSink.Sent out = new KafkaSink.Sent(of(run));
    for (byte[] rows : held) sendRows(rows, out);
    for (JsonNode letter : PlannedStream.JSON.readTree(letters)) out.send(record(letter));
    out.finish();
  }

  public static void commit(String run) {
    of(run).commitTransaction();
  }

  private static void sendRows(byte[] rows, KafkaSink.Out out) throws IOException {
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(rows));
    while (in.available() > 0) {
      String topic = in.readUTF();
      byte[] key = field(in);
      out.add(topic, key, field(in));
    }
  }

  private static byte[] field(DataInputStream in) throws IOException {
    int length = in.readInt();
    if (length < 0) return null;
    byte[] bytes = new byte[length];
    in.readFully(bytes);
    return bytes;
  }

  private static ProducerRecord<byte[], byte[]> record(JsonNode letter) throws IOException {
    ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(
        letter.get(0).asText(), letter.get(1).asInt(), letter.get(4).asLong(), bytes(letter.get(2)), bytes(letter.get(3)));
    for (JsonNode header : letter.get(5)) record.headers().add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
    return record;
  }

  private static byte[] bytes(JsonNode node) throws IOException {
    return node.isNull() ? null : node.binaryValue();
  }
}
