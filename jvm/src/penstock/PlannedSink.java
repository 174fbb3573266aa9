package penstock;

import java.util.Arrays;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/** Driver's side of writing: hands what the Spark partitions wrote to the planner, which commits all of it or nothing. */
abstract class PlannedSink implements StreamingWrite {
  final String sink;

  PlannedSink(String sink) {
    this.sink = sink;
  }

  /** What one Spark partition wrote, in words that the planner understands. */
  static class Message implements WriterCommitMessage {
    final String json;

    Message(String json) {
      this.json = json;
    }
  }

  @Override
  public boolean useCommitCoordinator() {
    return false;
  }

  @Override
  public void commit(long batch, WriterCommitMessage[] messages) {
    Planners.get().commitWrite(sink, batch, json(messages), DeadLetters.drain(sink));
  }

  /**
   * Spark aborts after any failure, even one after the commit landed: the planner takes back only what no commit holds.
   * What Kafka was sent outside a transaction cannot be taken back: the replay writes the batch again.
   */
  @Override
  public void abort(long batch, WriterCommitMessage[] messages) {
    DeadLetters.drain(sink);
    Planners.get().abortWrite(sink, batch, json(messages));
  }

  private static String[] json(WriterCommitMessage[] messages) {
    return Arrays.stream(messages).filter(m -> m instanceof Message).map(m -> ((Message) m).json).toArray(String[]::new);
  }
}
