package io.antipode.barrier;

import io.antipode.lineage.WriteId;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * Asks one primary for its position, for whoever wants to know, one after another. A client may
 * take longer than it is allowed, to find out that a host has no address, say. So no barrier asks
 * in a thread of its own, which it could not leave, nor in one for each barrier.
 */
class Fencer implements Stepper {
  private record Asked(CompletableFuture<Set<WriteId>> answer, Duration timeout) {}

  private final Shim shim;
  private final Clock clock;
  private final Wake wake = new Wake();
  private List<Asked> wanted = new ArrayList<>();
  private List<Asked> asking = List.of();
  private boolean isRunning;

  Fencer(Shim shim, Clock clock) {
    this.shim = shim;
    this.clock = clock;
  }

  @Override
  public String name() {
    return "antipode-fence-" + shim.datastore();
  }

  @Override
  public Wake wake() {
    return wake;
  }

  /**
   * Returns the position of a moment from now on, for who waits so long for it. What is being asked
   * already does not count: it began before.
   */
  synchronized CompletableFuture<Set<WriteId>> ask(Duration timeout) {
    CompletableFuture<Set<WriteId>> answer = new CompletableFuture<>();
    wanted.add(new Asked(answer, timeout));
    if (!isRunning) {
      try {
        clock.spawn(this);
        isRunning = true;
      } catch (NoThreadException error) {
        wanted.clear();
        answer.completeExceptionally(error);
      }
    }
    return answer;
  }

  @Override
  public @Nullable Duration step() {
    if (!begin()) {
      return null;
    }
    end();
    return Duration.ZERO;
  }

  /** Takes in who wants to know by now; returns whether anybody does. */
  final synchronized boolean begin() {
    asking = wanted.stream().filter(each -> !each.answer.isDone()).toList();
    wanted = new ArrayList<>();
    isRunning = !asking.isEmpty();
    return isRunning;
  }

  /** Asks, and notifies them. */
  final void end() {
    List<Asked> asked;
    synchronized (this) {
      asked = asking;
      asking = List.of();
    }
    try {
      Duration longest =
          asked.stream().map(Asked::timeout).max(Comparator.naturalOrder()).orElseThrow();
      Set<WriteId> writes = shim.fence(longest);
      asked.forEach(each -> each.answer.complete(writes));
    } catch (Throwable error) { // Whatever it is, it is what they get.
      asked.forEach(each -> each.answer.completeExceptionally(error));
    }
  }

  @Override
  public void pause(Duration timeout) {
    // There is no reason to wait: who asks later asks again.
  }
}
