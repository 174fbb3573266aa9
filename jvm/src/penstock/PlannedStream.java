package penstock;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.function.Function;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;

/** A stream whose every decision is the planner's; what a Spark partition holds is JSON that its reader understands. */
final class PlannedStream implements MicroBatchStream, SupportsTriggerAvailableNow {
  static final ObjectMapper JSON = new ObjectMapper();

  private final String stream;
  private final PartitionReaderFactory readers;
  private final Function<String, InputPartition> partition;

  PlannedStream(String stream, PartitionReaderFactory readers, Function<String, InputPartition> partition) {
    this.stream = stream;
    this.readers = readers;
    this.partition = partition;
  }

  static final class JsonOffset extends Offset {
    private final String json;

    JsonOffset(String json) {
      this.json = json;
    }

    @Override
    public String json() {
      return json;
    }
  }

  @Override
  public Offset initialOffset() {
    return new JsonOffset(Planners.get().initialOffset(stream));
  }

  @Override
  public Offset deserializeOffset(String json) {
    return new JsonOffset(json);
  }

  @Override
  public Offset latestOffset() {
    throw new UnsupportedOperationException("Spark asks with a start and a limit");
  }

  @Override
  public Offset latestOffset(Offset start, ReadLimit limit) {
    return new JsonOffset(Planners.get().latestOffset(stream, start.json()));
  }

  @Override
  public void prepareForTriggerAvailableNow() {
    Planners.get().prepareAvailableNow(stream);
  }

  @Override
  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    try {
      JsonNode plan = JSON.readTree(Planners.get().plan(stream, start.json(), end.json()));
      InputPartition[] partitions = new InputPartition[plan.size()];
      for (int i = 0; i < partitions.length; i++) partitions[i] = partition.apply(plan.get(i).toString());
      return partitions;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return readers;
  }

  @Override
  public void commit(Offset end) {
    String run = stream.substring(0, stream.lastIndexOf('#'));
    Planners.get().commitRead(stream, end.json(), DeadLetters.drain(run));
  }

  @Override
  public void stop() {}
}
