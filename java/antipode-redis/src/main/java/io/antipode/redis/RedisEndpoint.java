package io.antipode.redis;

import io.antipode.barrier.Endpoint;
import io.antipode.barrier.Observation;
import io.antipode.barrier.UnreachableException;
import io.antipode.barrier.Wake;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.TrackingArgs;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Polls with {@code INFO replication}; between polls the server pushes that companions and records
 * changed, as long as somebody waits: an idle connection that tracks would make the server buffer
 * pushes without bound. Where the server refuses that, polls are paced by time alone.
 */
final class RedisEndpoint implements Endpoint {
  private static final Duration TRACKING = Duration.ofSeconds(1);

  /** A busy server pushes faster than polls are worth. */
  private static final Duration LEAST_PAUSE = Duration.ofMillis(1);

  private final Link link;
  private final LogHistory history;
  private final String prefix;
  private boolean canTrack = true;
  private boolean isTracking;
  private volatile @Nullable Wake pausing;

  RedisEndpoint(Link link, LogHistory history, String prefix) {
    this.link = link;
    this.history = history;
    this.prefix = prefix;
    link.addListener(
        message -> {
          Wake wake = pausing;
          if (wake != null) {
            wake.set();
          }
        });
  }

  @Override
  public Observation observe(Collection<WriteId> writes, Duration timeout) throws RefusedException {
    return look(writes, List.of(), timeout);
  }

  @Override
  public Observation promised(Collection<Promise> promises, Duration timeout)
      throws RefusedException {
    return look(List.of(), List.copyOf(promises), timeout);
  }

  private Observation look(Collection<WriteId> writes, List<Promise> promises, Duration timeout)
      throws RefusedException {
    String refusal = link.refusal();
    if (refusal != null) {
      throw new RefusedException(refusal); // Each question would be logged at the server.
    }
    try {
      return new Look(link, history, prefix, timeout).at(writes, promises);
    } catch (RedisException error) {
      throw new UnreachableException(String.valueOf(error.getMessage()), error);
    }
  }

  @Override
  public boolean isReplica(Duration timeout) throws RefusedException {
    return !new Look(link, history, prefix, timeout).state().isPrimary();
  }

  @Override
  public void pause(Duration timeout, Wake wake) throws InterruptedException {
    if (wake.isSet()) {
      return;
    }
    if (canTrack && !isTracking) {
      // A change between the last poll and this moment is not pushed: it is polled again at once.
      track(TrackingArgs.Builder.enabled().bcast().prefixes(prefix));
      return;
    }
    Thread.sleep(LEAST_PAUSE.toMillis());
    pausing = wake;
    try {
      wake.await(timeout);
    } finally {
      pausing = null;
    }
  }

  @Override
  public void rest() {
    if (isTracking) {
      track(TrackingArgs.Builder.enabled(false));
    }
  }

  private void track(TrackingArgs args) {
    RedisFuture<String> answer = link.commands().clientTracking(args);
    link.flush();
    try {
      String ignored = link.answer(answer, TRACKING);
      isTracking = !isTracking;
    } catch (RedisCommandExecutionException error) {
      canTrack = false;
      isTracking = false;
    }
  }

  @Override
  public void interrupt() {
    link.interrupt();
  }

  @Override
  public void close() {
    link.close();
  }
}
