package penstock;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Rows into Kafka, counted per topic, with the batch's end told to the planner: progress and dead letters follow the
 * records, never precede them.
 *
 * <p>Rows are sent where they are made; with the option `hold` (bytes a Spark partition may make) they come to the
 * driver with their commit message instead, for one transaction. Uses nothing but Kafka's public client.
 */
final class KafkaSink extends PlannedSink {
  /** A send that takes longer than this waited for the broker. */
  private static final long LONG_SEND_NS = 1_000_000;

  private final Target target;

  KafkaSink(CaseInsensitiveStringMap options, StructType schema) {
    super(options.get("sink"));
    target = new Target(options, schema);
  }

  /** What an executor needs to know to write. */
  static final class Target implements Serializable {
    final String client;
    final long hold;
    final int topic;
    final int key;
    final int value;

    Target(CaseInsensitiveStringMap options, StructType schema) {
      client = options.get("client");
      hold = options.getLong("hold", 0);
      topic = schema.fieldIndex("topic");
      key = schema.fieldIndex("key");
      value = schema.fieldIndex("value");
    }
  }

  /** What one Spark partition wrote: counts, and the rows themselves where they are held. */
  static final class Wrote extends Message {
    final byte[] rows;

    Wrote(String json, byte[] rows) {
      super(json);
      this.rows = rows;
    }
  }

  /** Where a Spark partition's rows go. */
  interface Out {
    void add(String topic, byte[] key, byte[] value) throws IOException;

    /** All rows are where they should be; those that are held. */
    byte[] finish() throws IOException;
  }

  /** Producers of this JVM by their settings: many Spark tasks share one. */
  private static final Map<String, KafkaProducer<byte[], byte[]>> PRODUCERS = new ConcurrentHashMap<>();

  static final class Sent implements Out {
    private final KafkaProducer<byte[], byte[]> producer;
    private final AtomicReference<Exception> failed = new AtomicReference<>();

    Sent(KafkaProducer<byte[], byte[]> producer) {
      this.producer = producer;
    }

    @Override
    public void add(String topic, byte[] key, byte[] value) throws IOException {
      send(new ProducerRecord<>(topic, key, value));
    }

    void send(ProducerRecord<byte[], byte[]> record) throws IOException {
      check();
      producer.send(record, (place, error) -> {
        if (error != null) failed.compareAndSet(null, error);
      });
    }

    @Override
    public byte[] finish() throws IOException {
      producer.flush();
      check();
      return null;
    }

    private void check() throws IOException {
      Exception error = failed.get();
      if (error != null) throw new IOException("Kafka took not all records: " + error.getMessage(), error);
    }
  }

  /** Rows as bytes: topic, key, value, each with its length before it (-1: null). `KafkaTransactions` reads them. */
  private static final class Kept implements Out {
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private final DataOutputStream rows = new DataOutputStream(bytes);
    private final long most;

    Kept(long most) {
      this.most = most;
    }

    @Override
    public void add(String topic, byte[] key, byte[] value) throws IOException {
      rows.writeUTF(topic);
      put(key);
      put(value);
      if (rows.size() > most)
        throw new IOException("exactly_once = True: one thread of this batch makes more than " + (most >> 20)
            + " MB, which is too much for one transaction; set max_bytes_per_batch or max_records_per_batch.");
    }

    private void put(byte[] field) throws IOException {
      rows.writeInt(field == null ? -1 : field.length);
      if (field != null) rows.write(field);
    }

    @Override
    public byte[] finish() {
      return bytes.toByteArray();
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
      Out out = target.hold > 0
          ? new Kept(target.hold)
          : new Sent(PRODUCERS.computeIfAbsent(target.client, client -> new KafkaProducer<>(KafkaSource.settings(client))));
      return new Counting(target, out);
    }
  }

  private static final class Counting implements DataWriter<InternalRow> {
    private final Target target;
    private final Out out;
    private final Map<String, long[]> written = new HashMap<>();
    private final PenstockPlugin.Waits waits = PenstockPlugin.running();

    Counting(Target target, Out out) {
      this.target = target;
      this.out = out;
    }

    @Override
    public void write(InternalRow row) throws IOException {
      String topic = row.getUTF8String(target.topic).toString();
      byte[] key = row.isNullAt(target.key) ? null : row.getBinary(target.key);
      byte[] value = row.isNullAt(target.value) ? null : row.getBinary(target.value);
      long before = System.nanoTime();
      out.add(topic, key, value);
      blocked(before, LONG_SEND_NS);
      long[] counts = written.computeIfAbsent(topic, name -> new long[2]);
      counts[0]++;
      counts[1] += value == null ? 0 : value.length;
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
      long before = System.nanoTime();
      byte[] rows = out.finish();
      blocked(before, 0);
      long records = 0;
      ObjectNode counts = PlannedStream.JSON.createObjectNode();
      for (Map.Entry<String, long[]> topic : written.entrySet()) {
        records += topic.getValue()[0];
        counts.putArray(topic.getKey()).add(topic.getValue()[0]).add(topic.getValue()[1]);
      }
      TaskContext context = TaskContext.get();
      if (context != null) context.taskMetrics().outputMetrics().setRecordsWritten(records);
      return new Wrote(counts.toString(), rows);
    }

    private void blocked(long since, long least) {
      long took = System.nanoTime() - since;
      if (took > least) waits.blocked += took;
    }

    @Override
    public void abort() {}

    @Override
    public void close() {}
  }

  @Override
  public void commit(long batch, WriterCommitMessage[] messages) {
    if (target.hold > 0) KafkaTransactions.hold(sink, messages);
    super.commit(batch, messages);
  }
}
