package io.antipode.barrier;

import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** The machine's clocks; steppers run in daemon threads. */
final class SystemClock implements Clock {
  static final SystemClock INSTANCE = new SystemClock();

  /** Its thread ends when nothing was scheduled for a while. */
  private final ScheduledThreadPoolExecutor timer =
      new ScheduledThreadPoolExecutor(1, task -> daemon("antipode-timer", task));

  private SystemClock() {
    timer.setRemoveOnCancelPolicy(true);
    timer.setKeepAliveTime(1, TimeUnit.SECONDS);
    timer.allowCoreThreadTimeOut(true);
  }

  @Override
  public long nanoTime() {
    return System.nanoTime();
  }

  @Override
  public Instant now() {
    return Instant.now();
  }

  @Override
  public Thread spawn(Stepper stepper) {
    Thread thread =
        daemon(
            stepper.name(),
            () -> {
              for (Duration pause = stepper.step(); pause != null; pause = stepper.step()) {
                stepper.pause(pause);
              }
            });
    try {
      thread.start();
    } catch (OutOfMemoryError error) { // What the virtual machine throws where the limit is met.
      throw new NoThreadException(stepper.name(), error);
    }
    return thread;
  }

  @Override
  public Runnable schedule(Duration delay, Runnable task) {
    @Nullable Future<?> scheduled = timer.schedule(task, delay.toNanos(), TimeUnit.NANOSECONDS);
    return () -> scheduled.cancel(false);
  }

  @Override
  public void execute(Runnable task) {
    ForkJoinPool.commonPool().execute(task);
  }

  private static Thread daemon(String name, Runnable task) {
    Thread thread = new Thread(task, name);
    thread.setDaemon(true);
    return thread;
  }
}
