package io.antipode.barrier;

import java.time.Duration;
import java.time.Instant;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Time that passes only between events; everything runs in the caller's thread. Barriers on it use
 * the library's own engine, watchers and pacing.
 */
public final class VirtualClock implements Clock {
  private record Event(long at, long order, Runnable action) {}

  private final Instant start;
  private final PriorityQueue<Event> events =
      new PriorityQueue<>(Comparator.comparingLong(Event::at).thenComparingLong(Event::order));

  /** When each stepper goes on. */
  private final Map<Stepper, Long> due = new LinkedHashMap<>();

  private long now;
  private long order;

  /** Starts at 0 seconds of a Unix hour. */
  public VirtualClock(long hour) {
    this.start = Instant.ofEpochSecond(hour * 3_600);
  }

  @Override
  public long nanoTime() {
    return now;
  }

  @Override
  public Instant now() {
    return start.plusNanos(now);
  }

  @Override
  public @Nullable Thread spawn(Stepper stepper) {
    due.put(stepper, now);
    return null;
  }

  @Override
  public Runnable schedule(Duration delay, Runnable task) {
    AtomicBoolean isCancelled = new AtomicBoolean();
    at(
        now + delay.toNanos(),
        () -> {
          if (!isCancelled.get()) {
            task.run();
          }
        });
    return () -> isCancelled.set(true);
  }

  @Override
  public void execute(Runnable task) {
    at(now, task);
  }

  /** Does something when it is so many nanoseconds; in the past means now. */
  public void at(long when, Runnable action) {
    events.add(new Event(Math.max(when, now), order++, action));
  }

  /** Lets time pass until nothing is left to happen. */
  public void run() {
    while (!events.isEmpty() || !due.isEmpty()) {
      Event event = events.peek();
      Stepper next = due.isEmpty() ? null : next();
      long stepAt = next == null ? Long.MAX_VALUE : due.getOrDefault(next, now);
      if (event != null && event.at <= stepAt) {
        now = event.at;
        events.poll();
        event.action.run();
      } else if (next != null) {
        now = stepAt;
        step(next);
      }
      due.replaceAll((stepper, at) -> isWoken(stepper) ? now : at);
    }
  }

  private Stepper next() {
    return due.entrySet().stream()
        .min(Map.Entry.comparingByValue())
        .map(Map.Entry::getKey)
        .orElseThrow();
  }

  private void step(Stepper stepper) {
    due.remove(stepper);
    Duration pause = stepper.step();
    if (pause != null) {
      due.putIfAbsent(stepper, now + pause.toNanos());
    }
  }

  private static boolean isWoken(Stepper stepper) {
    return stepper instanceof VirtualRead read ? read.isHinted() : stepper.wake().isSet();
  }
}
