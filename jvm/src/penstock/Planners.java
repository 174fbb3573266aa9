package penstock;

import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The one door from Spark's threads to the Python planner.
 *
 * <p>Calls go through a pool: straight py4j callbacks leak a Python thread and a socket on each side for every query
 * start, and a query's stop() hangs while the planner is busy. It grows with the calls that are under way, so that tasks
 * of a slow broker hold up no others, and keeps idle threads long enough for the next batches. An interrupt becomes what
 * Spark takes for a stop.
 */
public final class Planners {
  private static final long IDLE_SECONDS = 600;
  private static final AtomicInteger COUNT = new AtomicInteger();
  private static final ExecutorService POOL = new ThreadPoolExecutor(
      0, Integer.MAX_VALUE, IDLE_SECONDS, TimeUnit.SECONDS, new SynchronousQueue<>(), task -> {
        Thread thread = new Thread(task, "penstock-planner-" + COUNT.incrementAndGet());
        thread.setDaemon(true);
        return thread;
      });
  private static volatile Planner planner;

  private Planners() {}

  /** Installs Python's planner; null removes it. */
  public static void set(Planner python) {
    planner = python == null ? null : (Planner) Proxy.newProxyInstance(
        Planner.class.getClassLoader(), new Class<?>[] {Planner.class},
        (proxy, method, args) -> {
          Future<Object> answer = POOL.submit(() -> method.invoke(python, args));
          try {
            return answer.get();
          } catch (InterruptedException e) {
            throw new UncheckedIOException(new InterruptedIOException("stopped while asking the planner"));
          } catch (ExecutionException e) {
            Throwable cause = e.getCause();
            if (cause instanceof InvocationTargetException) cause = cause.getCause();
            throw cause instanceof RuntimeException ? cause : new RuntimeException(cause);
          }
        });
  }

  static Planner get() {
    Planner python = planner;
    if (python == null) throw new IllegalStateException("no planner: this stream runs only inside a penstock container");
    return python;
  }
}
