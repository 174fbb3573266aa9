package penstock;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.Serializable;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryUsage;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskFailedReason;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * What each executor's process uses (heap, garbage collection, memory of the JVM and its Python workers), sent to the
 * driver every two seconds; and what each Spark task waited for, where it waited: a core, its source, its sink.
 */
public final class PenstockPlugin implements SparkPlugin {
  private static final long PERIOD_MS = 2000;
  private static final Path SCHEDSTAT = Paths.get("/proc/thread-self/schedstat");
  private static final long PAGE = 4096;
  /** Looking at memory page by page costs a millisecond for each process: not at every sample. */
  private static final int SAMPLES_A_LOOK = 4;

  private static final String WORKER_WAITS = System.getenv("PENSTOCK_WAITS");
  private static final int WAITS_KEPT = 65_536;

  /** Driver's side: waits by task attempt, until the probe asks. */
  private static final Map<Long, Waits> WAITS = new ConcurrentHashMap<>();

  /** Executor's side: waits of tasks that run now. */
  private static final Map<Long, Waits> RUNNING = new ConcurrentHashMap<>();

  /** What one Spark task waited for (nanoseconds): no part of its useful time. */
  static final class Waits implements Serializable {
    static final Waits NONE = new Waits(-1);
    final long attempt;
    long queue;
    long poll;
    long blocked;

    Waits(long attempt) {
      this.attempt = attempt;
    }

    long ms() {
      return (queue + poll + blocked) / 1_000_000;
    }
  }

  /** The running task's waits, to be added to by readers and writers. */
  static Waits running() {
    TaskContext context = TaskContext.get();
    return context == null ? new Waits(-1) : RUNNING.computeIfAbsent(context.taskAttemptId(), Waits::new);
  }

  /** A finished task's waits, once. */
  static Waits take(long attempt) {
    Waits waits = WAITS.remove(attempt);
    return waits == null ? Waits.NONE : waits;
  }

  private static void keep(Waits waits) {
    if (WAITS.size() < WAITS_KEPT) WAITS.put(waits.attempt, waits);
  }

  private static final Map<String, String> SAMPLES = new ConcurrentHashMap<>();

  /** Newest sample of every executor, a JSON array. */
  public static String samples() {
    return "[" + String.join(",", SAMPLES.values()) + "]";
  }

  /** The executor is gone. */
  public static void forget(String executor) {
    SAMPLES.remove(executor);
  }

  static final class Sample implements Serializable {
    final String executor;
    final String json;

    Sample(String executor, String json) {
      this.executor = executor;
      this.json = json;
    }
  }

  @Override
  public DriverPlugin driverPlugin() {
    return new DriverPlugin() {
      @Override
      public Map<String, String> init(SparkContext context, PluginContext plugin) {
        SAMPLES.clear();
        WAITS.clear();
        return Map.of();
      }

      @Override
      public Object receive(Object message) {
        if (message instanceof Waits) {
          keep((Waits) message);
        } else {
          Sample sample = (Sample) message;
          SAMPLES.put(sample.executor, sample.json);
        }
        return null;
      }
    };
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new Executor();
  }

  private static final class Executor implements ExecutorPlugin {
    /** Of the Spark task on this thread: its attempt, and the thread's queueing so far (its context is gone at its end). */
    private final ThreadLocal<long[]> started = new ThreadLocal<>();
    private PluginContext plugin;
    private ScheduledExecutorService timer;
    private boolean local;
    private int samples;
    private ArrayNode processes;

    @Override
    public void init(PluginContext context, Map<String, String> extra) {
      plugin = context;
      local = "driver".equals(context.executorID());
      timer = Executors.newSingleThreadScheduledExecutor(task -> {
        Thread thread = new Thread(task, "penstock-sample");
        thread.setDaemon(true);
        return thread;
      });
      timer.scheduleAtFixedRate(() -> {
        if (!Probe.enabled()) return;
        if (samples++ % SAMPLES_A_LOOK == 0) processes = processes();
        send(context, new Sample(context.executorID(), sample(context.executorID(), processes)));
      }, 0, PERIOD_MS, TimeUnit.MILLISECONDS);
    }

    private static void send(PluginContext context, Serializable message) {
      try {
        context.send(message);
      } catch (Exception e) {
        return; // the driver is stopping, or not there yet: the next sample tells
      }
    }

    @Override
    public void onTaskStart() {
      if (Probe.enabled()) started.set(new long[] {TaskContext.get().taskAttemptId(), queueNs()});
    }

    @Override
    public void onTaskSucceeded() {
      if (started.get() == null) return;
      long attempt = started.get()[0];
      Waits waits = RUNNING.remove(attempt);
      long queue = Math.max(0, queueNs() - started.get()[1]) + workerQueueNs(attempt);
      started.remove();
      if (waits == null && queue < 1_000_000) return;
      if (waits == null) waits = new Waits(attempt);
      waits.queue += queue;
      if (local) keep(waits);
      else send(plugin, waits);
    }

    @Override
    public void onTaskFailed(TaskFailedReason reason) {
      if (started.get() == null) return;
      long attempt = started.get()[0];
      started.remove();
      RUNNING.remove(attempt);
      workerQueueNs(attempt);
    }

    @Override
    public void shutdown() {
      timer.shutdownNow();
    }
  }

  private static long queueNs() {
    try {
      return Long.parseLong(Files.readString(SCHEDSTAT).trim().split(" ")[1]);
    } catch (IOException | RuntimeException e) {
      return 0;
    }
  }

  /** What this task's Python workers say that they waited for a core: a line each, in a file of the task's. */
  private static long workerQueueNs(long attempt) {
    if (WORKER_WAITS == null) return 0;
    Path file = Paths.get(WORKER_WAITS, Long.toString(attempt));
    try {
      if (!Files.exists(file)) return 0;
      long total = 0;
      for (String line : Files.readAllLines(file)) total += Long.parseLong(line);
      Files.deleteIfExists(file);
      return total;
    } catch (IOException | NumberFormatException e) {
      return 0;
    }
  }

  private static String sample(String executor, ArrayNode processes) {
    MemoryUsage heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage();
    long gcMs = 0;
    long gcCount = 0;
    for (GarbageCollectorMXBean gc : ManagementFactory.getGarbageCollectorMXBeans()) {
      gcMs += Math.max(0, gc.getCollectionTime());
      gcCount += Math.max(0, gc.getCollectionCount());
    }
    ObjectNode node = PlannedStream.JSON.createObjectNode();
    node.put("executor", executor).put("at", System.currentTimeMillis());
    node.put("heapUsed", heap.getUsed()).put("heapCommitted", heap.getCommitted()).put("heapMax", heap.getMax());
    node.put("gcMs", gcMs).put("gcCount", gcCount);
    node.set("processes", processes);
    return node.toString();
  }

  private static ArrayNode processes() {
    ArrayNode processes = PlannedStream.JSON.createArrayNode();
    ProcessHandle self = ProcessHandle.current();
    process(processes, "jvm", self);
    self.descendants().forEach(child -> process(processes, "python-worker", child));
    return processes;
  }

  private static void process(ArrayNode processes, String kind, ProcessHandle process) {
    try {
      long cpuMs = process.info().totalCpuDuration().map(java.time.Duration::toMillis).orElse(0L);
      long bytes = memory(Paths.get("/proc/" + process.pid())); // first: of one that has just ended nothing is added
      processes.addArray().add(kind).add(process.pid()).add(bytes).add(cpuMs);
    } catch (IOException | RuntimeException e) {
      return; // it ended meanwhile, or this is no Linux
    }
  }

  /** Resident bytes; pages that several processes share (forked Python workers do) count for each in proportion. */
  private static long memory(Path process) throws IOException {
    try {
      for (String line : Files.readAllLines(process.resolve("smaps_rollup"))) {
        if (line.startsWith("Pss:")) return Long.parseLong(line.replaceAll("\\D", "")) * 1024;
      }
    } catch (IOException e) {
      // another user's process, or an older kernel: what statm says is at least an upper bound
    }
    return Long.parseLong(Files.readString(process.resolve("statm")).split(" ")[1]) * PAGE;
  }
}
