package io.antipode.aws;

import io.antipode.ConfigurationException;
import io.antipode.ReadBarriers;
import io.antipode.barrier.Endpoint;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.ShimBuilder;
import java.net.URI;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.awscore.AwsClient;
import software.amazon.awssdk.regions.Region;

/** One region of a store of AWS's, which barriers poll. */
public abstract class RegionShim extends AwsShim {
  private final Regions<?> regions;
  private final @Nullable ReadBarriers barriers;

  /**
   * Makes what a builder describes.
   *
   * @param store which kind of store it is, in logs
   * @param regions what polls them; closed with the shim
   */
  protected RegionShim(Builder<?, ?> builder, String store, Regions<?> regions) {
    super(builder, store);
    this.regions = regions;
    this.barriers = builder.barriers;
  }

  /**
   * Describes a shim of a region.
   *
   * @param <B> the builder itself
   * @param <S> the shim that it makes
   */
  public abstract static class Builder<B extends Builder<B, S>, S extends RegionShim>
      extends ShimBuilder<B, S> {
    private final Map<String, URI> regions = new HashMap<>();
    private @Nullable ReadBarriers barriers;

    /** Names the datastore. */
    protected Builder(String datastore) {
      super(datastore);
    }

    /** Says where another region is, if not where AWS has it. */
    public final B region(String region, URI endpoint) {
      regions.put(
          Objects.requireNonNull(region, "region"), Objects.requireNonNull(endpoint, "endpoint"));
      return self();
    }

    /** Lets reads wait automatically, or not, whatever is configured. */
    public final B barriers(ReadBarriers barriers) {
      this.barriers = barriers;
      return self();
    }

    /** Returns where further regions are, if not where AWS has them. */
    protected final Map<String, URI> regions() {
      return regions;
    }
  }

  @Override
  public boolean holdsReads() {
    return true;
  }

  @Override
  public @Nullable ReadBarriers barriers() {
    return barriers;
  }

  @Override
  public Object server() {
    return regions.server();
  }

  @Override
  public Endpoint openEndpoint(Duration timeout) {
    return new RegionEndpoint(regions);
  }

  @Override
  public String region() {
    return regions.here();
  }

  @Override
  Observation observe(Floor floor) throws Exception {
    return regions.observe(floor);
  }

  @Override
  void check(AwsClient made) {
    Region region = made.serviceClientConfiguration().region();
    if (region.id().equals(region())) {
      return;
    }
    throw new ConfigurationException(
        "a client of "
            + region.id()
            + " writes in another region than this shim of '"
            + datastore()
            + "', which is of "
            + region()
            + ": use a shim for each region");
  }

  @Override
  public void close() {
    super.close();
    regions.close();
  }
}
