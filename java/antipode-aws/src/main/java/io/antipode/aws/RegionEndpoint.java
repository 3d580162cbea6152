package io.antipode.aws;

import io.antipode.barrier.Endpoint;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Wake;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.time.Duration;
import java.util.Collection;

/** Where barriers poll a region. */
final class RegionEndpoint implements Endpoint {
  /** Each poll is a request that costs money. */
  private static final Duration LEAST_PAUSE = Duration.ofMillis(10);

  private final Regions<?> regions;

  RegionEndpoint(Regions<?> regions) {
    this.regions = regions;
  }

  @Override
  public Observation observe(Collection<WriteId> writes, Duration timeout) throws Exception {
    return regions.observe(writes); // Each request has its own, shorter limit.
  }

  @Override
  public Observation promised(Collection<Promise> promises, Duration timeout) throws Exception {
    return regions.promised(promises);
  }

  @Override
  public void pause(Duration timeout, Wake wake) throws InterruptedException {
    boolean unused = wake.await(timeout.compareTo(LEAST_PAUSE) < 0 ? LEAST_PAUSE : timeout);
  }

  /** Leaves the clients to their shim. */
  @Override
  public void close() {}
}
