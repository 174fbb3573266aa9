package penstock;

/** All decisions about streams, made in the driver's Python. Offsets and plans are JSON; a stream or sink is named by its option. */
public interface Planner {
  /** Where a stream starts when its checkpoint is empty. Asked again after a crash in batch 0: the answer never changes. */
  String initialOffset(String stream);

  /** How far the next batch may read, admission included; equal to `start` when there is nothing to do. */
  String latestOffset(String stream, String start);

  /** One JSON value for each Spark partition of the batch. */
  String plan(String stream, String start, String end);

  /** Spark will not ask for anything before `end` again. What did not parse comes along where the sink has no commit of ours. */
  void commitRead(String stream, String end, String deadLetters);

  /** A backfill: what is there now is the end. */
  void prepareAvailableNow(String stream);

  /** Commit a micro-batch: one message for each Spark partition that wrote, and the records that did not parse. */
  void commitWrite(String sink, long batchId, String[] messages, String deadLetters);

  /** The batch failed somewhere; files that no commit holds may go. */
  void abortWrite(String sink, long batchId, String[] messages);
}
