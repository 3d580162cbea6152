package io.antipode.aws;

import io.antipode.ConfigurationException;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Status;
import io.antipode.barrier.UnreachableException;
import io.antipode.lineage.Dependency;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.net.URI;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.awscore.AwsClient;
import software.amazon.awssdk.awscore.AwsServiceClientConfiguration;
import software.amazon.awssdk.awscore.client.builder.AwsClientBuilder;
import software.amazon.awssdk.awscore.retry.AwsRetryStrategy;
import software.amazon.awssdk.regions.Region;

/**
 * The library's own clients: one for each region that is asked. Thread-safe.
 *
 * @param <C> the client
 */
public abstract class Regions<C extends AwsClient> implements AutoCloseable {
  /** How long one request of the library's own may take. */
  private static final Duration REQUEST = Duration.ofSeconds(1);

  /** For how long a poll that missed something counts for reads whose time is up. */
  private static final Duration RECENT = Duration.ofMillis(50);

  private final String here;
  private final boolean isAws;
  private final AwsServiceClientConfiguration settings;
  private final Map<String, URI> endpoints;
  private final Map<String, C> clients = new HashMap<>();
  private boolean isClosed;
  private volatile @Nullable Last last;

  /** What a poll for reads showed, and when. */
  private record Last(long at, Set<Dependency> wanted, Observation observation) {}

  /**
   * Takes what the application's client is configured with.
   *
   * @param others where further regions are, if not where AWS has them
   */
  protected Regions(AwsServiceClientConfiguration settings, Map<String, URI> others) {
    this.here = settings.region().id();
    this.settings = settings;
    this.endpoints = new HashMap<>(others);
    this.isAws = settings.endpointOverride().isEmpty();
    settings.endpointOverride().ifPresent(own -> endpoints.put(here, own));
  }

  /** Returns what this region shows of writes. */
  protected abstract Observation look(Collection<WriteId> writes) throws Exception;

  /** Returns what this region shows of promises, of a store that has records of them. */
  protected Observation lookFor(Collection<Promise> promises) throws Exception {
    throw new UnsupportedOperationException(getClass().getName() + " cannot ask for promises");
  }

  /** Connects to a region, by {@link #connect}. */
  protected abstract C open(String region);

  /** Returns the region that is polled. */
  protected final String here() {
    return here;
  }

  /** Returns what distinguishes this region from others. */
  final String server() {
    return here + " " + endpoints.get(here);
  }

  /**
   * Returns what this region shows of writes.
   *
   * @throws UnreachableException if it was throttled, or could not be reached
   */
  final Observation observe(Collection<WriteId> writes) throws Exception {
    try {
      return look(writes);
    } catch (RuntimeException error) {
      throw Errors.lasting(error);
    }
  }

  /**
   * Returns what this region shows of promises.
   *
   * @throws UnreachableException as {@link #observe(Collection)}
   */
  final Observation promised(Collection<Promise> promises) throws Exception {
    try {
      return lookFor(promises);
    } catch (RuntimeException error) {
      throw Errors.lasting(error);
    }
  }

  /**
   * Returns what it shows of what a floor demands; where its time is up, what the last poll showed,
   * if that is recent: reads that are answered stale need not pay for a poll each.
   */
  final Observation observe(Floor floor) throws Exception {
    Set<Dependency> wanted = new HashSet<>(floor.writes());
    wanted.addAll(floor.promises());
    long now = System.nanoTime();
    Last known = last;
    if (known != null
        && floor.blockTimeout(RECENT).isZero()
        && known.wanted.equals(wanted)
        && now - known.at < RECENT.toNanos()) {
      return known.observation;
    }
    Observation shown;
    try {
      shown = poll(floor.writes(), floor.promises());
    } catch (UnreachableException error) { // Worth repeating, within the time of the read.
      Observation.Builder away = Observation.of(here);
      String cause = String.valueOf(error.getMessage());
      floor.writes().forEach(each -> away.write(each, Status.NOT_YET, cause));
      floor.promises().forEach(each -> away.promise(each, Status.NOT_YET, cause));
      return away.build();
    }
    last = new Last(now, wanted, shown);
    return shown;
  }

  private Observation poll(List<WriteId> writes, List<Promise> promises) throws Exception {
    if (promises.isEmpty()) {
      return observe(writes);
    }
    Observation records = promised(promises);
    return writes.isEmpty() ? records : records.with(observe(writes));
  }

  /** Returns the client of a region. */
  protected final synchronized C client(String region) {
    if (isClosed) {
      throw new IllegalStateException("the shim of " + here + " is closed");
    }
    return clients.computeIfAbsent(region, this::open);
  }

  /** Returns a client of a region that tries once, and has no interceptor of ours. */
  protected final <B extends AwsClientBuilder<B, C>> C connect(B builder, String region) {
    @Nullable URI endpoint = endpoints.get(region);
    if (endpoint == null && !isAws) {
      throw new ConfigurationException(
          "say where it is: Builder.region(\"" + region + "\", its endpoint)");
    }
    if (endpoint != null) {
      builder.endpointOverride(endpoint);
    }
    return builder
        .region(Region.of(region))
        .credentialsProvider(settings.credentialsProvider())
        .overrideConfiguration(
            options -> options.apiCallTimeout(REQUEST).retryStrategy(AwsRetryStrategy.doNotRetry()))
        .build();
  }

  @Override
  public void close() {
    synchronized (this) {
      isClosed = true;
      clients.values().forEach(AwsClient::close);
      clients.clear();
    }
  }
}
