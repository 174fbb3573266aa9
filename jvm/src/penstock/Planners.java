package penstock;

import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The one door from Spark's threads to the Python planner.
 *
 * <p>Calls go through a fixed pool: straight py4j callbacks leak a Python thread and a socket on each side for every
 * query start, and a query's stop() hangs while the planner is busy. An interrupt becomes what Spark takes for a stop.
 */
public final class Planners {
  private static final int THREADS = 8;
  private static final AtomicInteger COUNT = new AtomicInteger();
  private static final ExecutorService POOL = Executors.newFixedThreadPool(THREADS, task -> {
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
