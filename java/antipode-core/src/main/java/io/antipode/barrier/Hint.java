package io.antipode.barrier;

import io.antipode.lineage.Dependency;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * A watcher's word that a server shows by now what a held read must see. It may poll another server
 * than the read is made at, so it ends a pause, and decides nothing.
 */
final class Hint implements Subscriber {
  private final Watcher watcher;
  private final CountDownLatch given = new CountDownLatch(1);
  private volatile Set<Dependency> left;

  Hint(Watcher watcher, Set<Dependency> wanted) {
    this.watcher = watcher;
    this.left = wanted;
    watcher.subscribe(this, false);
  }

  /** Returns whether no more is to come: all was seen, or the watcher cannot see it. */
  boolean isGiven() {
    return given.getCount() == 0;
  }

  void await(Duration timeout) throws InterruptedException {
    boolean ignored = given.await(timeout.toNanos(), TimeUnit.NANOSECONDS);
  }

  /** Ends whoever waits for it. */
  void wake() {
    given.countDown();
  }

  void cancel() {
    wake();
    watcher.unsubscribe(this);
  }

  @Override
  public Set<Dependency> wanted(String datastore) {
    return isGiven() ? Set.of() : left;
  }

  @Override
  public void take(String datastore, Observation observation) {
    Set<Dependency> missing = new HashSet<>(left);
    missing.removeIf(each -> !observation.status(each).isPending());
    left = Set.copyOf(missing);
    if (missing.isEmpty()) {
      given.countDown();
    }
  }

  @Override
  public void unreachable(String datastore, String cause) {
    given.countDown(); // The watcher sees less than the read's own connection.
  }

  @Override
  public void failed(String datastore, String cause) {
    given.countDown();
  }
}
