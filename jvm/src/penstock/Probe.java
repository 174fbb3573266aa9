package penstock;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.spark.Success$;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.TaskInfo;
import org.apache.spark.sql.streaming.SourceProgress;
import org.apache.spark.sql.streaming.StateOperatorProgress;
import org.apache.spark.sql.streaming.StreamingQueryListener;
import org.apache.spark.sql.streaming.StreamingQueryProgress;

/**
 * Adds up what each stage of each micro-batch did, and hands out one line of JSON for each finished batch.
 *
 * <p>A query's progress travels through the same listener queue as its tasks' ends, after them: when it comes, the
 * batch's stages are complete. What a task waited for may come a moment later than its end, so it is taken off then.
 * Only counts and times are kept; nothing is decided here.
 */
public final class Probe extends SparkListener {
  private static final int BATCHES_KEPT = 4096;
  private static final int INSTANCES_KEPT = 1024;
  private static final StringBuilder LINES = new StringBuilder();
  private static volatile boolean enabled = true;

  private static final class Stage {
    final List<long[]> instances = new ArrayList<>();
    String query;
    String run;
    long batch;
    int id;
    int planned;
    boolean shuffled;
    int finished;
    long start = Long.MAX_VALUE;
    long end;
    long recordsIn;
    long recordsOut;
    long bytesIn;
    long bytesOut;
    long fetchMs;
    long gcMs;
    long pythonMs;
    long delayMs;
    long spilled;
    long peak;
    long wastedMs;
  }

  private final Map<Integer, Stage> stages = new LinkedHashMap<>();

  /** Off, nothing is measured, in this JVM's tasks neither: what the overhead is compared with. */
  public static void enable(boolean on) {
    enabled = on;
  }

  static boolean enabled() {
    return enabled;
  }

  @Override
  public synchronized void onStageSubmitted(SparkListenerStageSubmitted event) {
    if (!enabled) return;
    Properties properties = event.properties();
    String query = properties == null ? null : properties.getProperty("sql.streaming.queryId");
    String batch = properties == null ? null : properties.getProperty("streaming.sql.batchId");
    if (query == null || batch == null) return;
    Stage stage = stages.computeIfAbsent(event.stageInfo().stageId(), k -> new Stage());
    stage.query = query;
    stage.run = properties.getProperty("spark.jobGroup.id");
    stage.batch = Long.parseLong(batch);
    stage.id = event.stageInfo().stageId();
    stage.planned = event.stageInfo().numTasks();
    stage.shuffled = !event.stageInfo().parentIds().isEmpty();
    if (stages.size() > BATCHES_KEPT) stages.remove(stages.keySet().iterator().next());
  }

  @Override
  public synchronized void onTaskEnd(SparkListenerTaskEnd event) {
    Stage stage = enabled ? stages.get(event.stageId()) : null;
    TaskMetrics metrics = event.taskMetrics();
    if (stage == null || metrics == null) return;
    TaskInfo info = event.taskInfo();
    if (event.reason() != Success$.MODULE$ || info.speculative()) {
      stage.wastedMs += metrics.executorRunTime();
      return;
    }
    long fetch = metrics.shuffleReadMetrics().fetchWaitTime();
    long busy = metrics.executorDeserializeTime() + metrics.executorRunTime() + metrics.resultSerializationTime() - fetch;
    long recordsIn = metrics.inputMetrics().recordsRead() + metrics.shuffleReadMetrics().recordsRead();
    long recordsOut = metrics.shuffleWriteMetrics().recordsWritten() + metrics.outputMetrics().recordsWritten();
    stage.finished++;
    stage.start = Math.min(stage.start, info.launchTime());
    stage.end = Math.max(stage.end, info.finishTime());
    stage.recordsIn += recordsIn;
    stage.recordsOut += recordsOut;
    stage.bytesIn += metrics.inputMetrics().bytesRead() + metrics.shuffleReadMetrics().totalBytesRead();
    stage.bytesOut += metrics.shuffleWriteMetrics().bytesWritten() + metrics.outputMetrics().bytesWritten();
    stage.fetchMs += fetch;
    stage.gcMs += metrics.jvmGCTime();
    stage.pythonMs += pythonMs(info);
    stage.delayMs += Math.max(0, info.duration() - metrics.executorRunTime() - metrics.executorDeserializeTime()
        - metrics.resultSerializationTime());
    stage.spilled += metrics.memoryBytesSpilled() + metrics.diskBytesSpilled();
    stage.peak = Math.max(stage.peak, metrics.peakExecutionMemory());
    stage.instances.add(new long[] {info.index(), recordsIn, recordsOut, busy, info.taskId()});
  }

  /** Spark's own count is cumulative along chained Python nodes: the largest is the whole. */
  private static long pythonMs(TaskInfo info) {
    long most = 0;
    scala.collection.Iterator<org.apache.spark.scheduler.AccumulableInfo> all = info.accumulables().iterator();
    while (all.hasNext()) {
      org.apache.spark.scheduler.AccumulableInfo one = all.next();
      if (one.name().isDefined() && one.name().get().toLowerCase().contains("execute python") && one.update().isDefined()) {
        try {
          most = Math.max(most, Long.parseLong(one.update().get().toString()));
        } catch (NumberFormatException e) {
          continue;
        }
      }
    }
    return most;
  }

  @Override
  public void onExecutorRemoved(SparkListenerExecutorRemoved event) {
    PenstockPlugin.forget(event.executorId());
  }

  @Override
  public void onOtherEvent(SparkListenerEvent event) {
    if (enabled && event instanceof StreamingQueryListener.QueryProgressEvent) {
      progress(((StreamingQueryListener.QueryProgressEvent) event).progress());
    }
  }

  private void progress(StreamingQueryProgress progress) {
    ObjectNode line = PlannedStream.JSON.createObjectNode();
    line.put("query", progress.name());
    line.put("batch", progress.batchId());
    line.put("started", java.time.Instant.parse(progress.timestamp()).toEpochMilli());
    ObjectNode durations = line.putObject("ms");
    progress.durationMs().forEach((name, ms) -> durations.put(name, ms));
    long rows = 0;
    long bytes = 0;
    for (StateOperatorProgress state : progress.stateOperators()) {
      rows += state.numRowsTotal();
      bytes += state.memoryUsedBytes();
    }
    ArrayNode sources = line.putArray("sources");
    for (SourceProgress source : progress.sources()) sources.addArray().add(source.startOffset()).add(source.endOffset());
    line.put("states", progress.stateOperators().length).put("stateRows", rows).put("stateBytes", bytes);
    ArrayNode list = line.putArray("stages");
    synchronized (this) {
      String id = progress.id().toString();
      String run = progress.runId().toString();
      long[] lost = new long[1];
      List<Stage> done = new ArrayList<>();
      stages.values().removeIf(stage -> {
        if (!id.equals(stage.query) || stage.batch > progress.batchId()) return false;
        // A run of the query that failed in this batch left stages too: their time is lost, and no part of a rate.
        if (run.equals(stage.run)) {
          if (stage.batch == progress.batchId()) done.add(stage);
        } else {
          lost[0] += stage.wastedMs;
          for (long[] one : stage.instances) lost[0] += one[3];
        }
        return true;
      });
      if (!done.isEmpty()) done.get(0).wastedMs += lost[0];
      for (Stage stage : done) add(list, stage);
    }
    synchronized (LINES) {
      if (LINES.length() < 64 << 20) LINES.append(line).append('\n');
    }
  }

  private static void add(ArrayNode list, Stage stage) {
    ObjectNode node = list.addObject();
    node.put("id", stage.id).put("planned", stage.planned).put("shuffled", stage.shuffled).put("finished", stage.finished);
    node.put("start", stage.start == Long.MAX_VALUE ? 0 : stage.start).put("end", stage.end);
    ArrayNode rows = node.putArray("instances");
    long useful = 0;
    long longest = 0;
    long queue = 0;
    long poll = 0;
    long blocked = 0;
    for (long[] one : stage.instances) {
      PenstockPlugin.Waits waits = PenstockPlugin.take(one[4]);
      long own = Math.max(0, one[3] - waits.ms());
      useful += own;
      longest = Math.max(longest, own);
      queue += waits.queue;
      poll += waits.poll;
      blocked += waits.blocked;
      if (rows.size() < INSTANCES_KEPT) rows.addArray().add(one[0]).add(one[1]).add(one[2]).add(own);
    }
    node.put("useful", useful).put("longest", longest).put("wasted", stage.wastedMs);
    node.put("in", stage.recordsIn).put("out", stage.recordsOut).put("bytesIn", stage.bytesIn).put("bytesOut", stage.bytesOut);
    node.put("fetch", stage.fetchMs).put("gc", stage.gcMs).put("python", stage.pythonMs);
    node.put("queueNs", queue).put("pollNs", poll).put("blockedNs", blocked);
    node.put("delay", stage.delayMs).put("spilled", stage.spilled).put("peak", stage.peak);
  }

  /** Up to `limit` characters of lines not yet handed out (py4j answers over 8 KB cost 40 ms each); "" when none. */
  public static String drain(int limit) {
    synchronized (LINES) {
      int length = Math.min(limit, LINES.length());
      String part = LINES.substring(0, length);
      LINES.delete(0, length);
      return part;
    }
  }
}
