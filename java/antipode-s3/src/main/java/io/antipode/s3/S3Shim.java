package io.antipode.s3;

import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.aws.Attempts;
import io.antipode.aws.AwsCall;
import io.antipode.aws.RegionShim;
import io.antipode.barrier.StaleRead;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.Recording;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import io.antipode.runtime.Time;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.ResponseBytes;
import software.amazon.awssdk.core.SdkRequest;
import software.amazon.awssdk.core.exception.SdkException;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.services.s3.S3AsyncClient;
import software.amazon.awssdk.services.s3.S3AsyncClientBuilder;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.S3ClientBuilder;
import software.amazon.awssdk.services.s3.S3Utilities;
import software.amazon.awssdk.services.s3.model.DeleteObjectRequest;
import software.amazon.awssdk.services.s3.model.GetObjectRequest;
import software.amazon.awssdk.services.s3.model.GetObjectResponse;
import software.amazon.awssdk.services.s3.model.HeadObjectRequest;
import software.amazon.awssdk.services.s3.model.HeadObjectResponse;
import software.amazon.awssdk.services.s3.model.NoSuchKeyException;
import software.amazon.awssdk.services.s3.model.PutObjectRequest;
import software.amazon.awssdk.services.s3.presigner.S3Presigner;

/**
 * The buckets of one region, as one process sees them: values with their stored lineage, and waits.
 * Buckets are versioned: a write's version is its {@code VersionId}. What is written here is read
 * by the shims of other languages, and the reverse.
 */
public final class S3Shim extends RegionShim {
  private final S3Client client;
  private final @Nullable String bucket;
  private final boolean stores;
  private final Uploads uploads = new Uploads();

  /**
   * What a read found.
   *
   * @param value null where there is none
   * @param lineage what it depends on
   */
  @SuppressWarnings("ArrayRecordComponent") // A content is not compared.
  public record Found(byte @Nullable [] value, Lineage lineage) {}

  private S3Shim(Builder builder, S3Client client, S3Regions regions) {
    super(builder, "s3", regions);
    this.client = client;
    this.bucket = builder.bucket;
    this.stores = builder.stores;
  }

  /**
   * Returns a builder of a shim.
   *
   * @param datastore the name that every service spells alike
   * @param client which makes the client of Table 2, and says how this region is reached: with its
   *     region, its credentials and, where it has one, its endpoint
   */
  public static Builder builder(String datastore, S3ClientBuilder client) {
    return new Builder(datastore, client);
  }

  /** Describes a shim; one whose names cannot work cannot be registered. */
  public static final class Builder extends RegionShim.Builder<Builder, S3Shim> {
    private final S3ClientBuilder client;
    private final Map<String, String> copies = new HashMap<>();
    private @Nullable String bucket;
    private boolean stores;

    private Builder(String datastore, S3ClientBuilder client) {
      super(datastore);
      this.client = Objects.requireNonNull(client, "client");
    }

    /** Names the bucket of Table 2, which is versioned. */
    public Builder bucket(String bucket) {
      this.bucket = Objects.requireNonNull(bucket, "bucket");
      return this;
    }

    /**
     * Names the bucket of this region that has the copies of one of another region, where their
     * names differ.
     */
    public Builder copies(String bucket, String here) {
      copies.put(Objects.requireNonNull(bucket, "bucket"), Objects.requireNonNull(here, "here"));
      return this;
    }

    /**
     * Lets instrumented clients store the current lineage in the metadata of each object that they
     * put, and merge what lies in those that they read. A copy then asks for its source.
     */
    public Builder storingLineages() {
      this.stores = true;
      return this;
    }

    @Override
    protected Builder self() {
      return this;
    }

    @Override
    protected S3Shim build() {
      if (bucket != null && Place.of(bucket, "key", "") == null) {
        throw new ConfigurationException(
            "bucket must be the name of a bucket, not '" + bucket + "'");
      }
      S3Client own = built(client, new Attempts.Counting());
      return new S3Shim(this, own, new S3Regions(own, regions(), copies));
    }
  }

  // Clients of the application's.

  /**
   * Returns the client that a builder makes: the application's to use, and to close. Its writes
   * enter the current scope, and its reads wait for floors, whatever is made of it, such as
   * paginators and waiters.
   *
   * @param builder of a client of this shim's region
   * @throws ConfigurationException if it is of another region
   */
  public S3Client instrument(S3ClientBuilder builder) {
    return instrumented(builder);
  }

  /**
   * Returns an asynchronous client, as {@link #instrument(S3ClientBuilder)} does. No thread of the
   * application's waits; a write whose future is cancelled marks the lineage. The calls of a
   * transfer manager over it, and the parts of an upload, are of the request that started them.
   *
   * @param builder of a client of this shim's region
   * @throws ConfigurationException if it is of another region
   */
  public S3AsyncClient instrument(S3AsyncClientBuilder builder) {
    return instrumentedAsync(S3AsyncClient.class, builder);
  }

  /**
   * Returns what is used in the place of a client that was made before, such as a bean; it stays
   * the application's to close. Its waiters are not followed.
   *
   * @throws ConfigurationException if it is of another region
   */
  public S3Client instrument(S3Client made) {
    return around(S3Client.class, made);
  }

  /**
   * Returns what is used in the place of a client that was made before, such as a bean; it stays
   * the application's to close. Its waiters are not followed.
   *
   * @throws ConfigurationException if it is of another region
   */
  public S3AsyncClient instrument(S3AsyncClient made) {
    return aroundAsync(S3AsyncClient.class, made);
  }

  /** Returns a presigner whose signatures are counted: they enter nothing. */
  public S3Presigner instrument(S3Presigner presigner) {
    return KillSwitch.isDisabled() ? presigner : CountedPresigner.of(presigner, datastore());
  }

  /**
   * Returns whether a client names buckets in the paths of its URLs, not in their hosts: its
   * configuration does not say so, but its URLs do.
   */
  public static boolean isPathStyle(S3Utilities urls) {
    return urls.getUrl(asked -> asked.bucket("antipode").key("key"))
        .getPath()
        .startsWith("/antipode/");
  }

  @Override
  protected AwsCall call(String operation, SdkRequest request, @Nullable AwsCall whole) {
    return new Call(this, operation, request, whole);
  }

  boolean stores() {
    return stores;
  }

  Uploads uploads() {
    return uploads;
  }

  /** Returns what an object is, with the time of the application's; null where it is not known. */
  @Nullable HeadObjectResponse ask(Consumer<HeadObjectRequest.Builder> asked) {
    try {
      return client.headObject(asked);
    } catch (SdkException error) {
      return null;
    }
  }

  /** Notes that an object is written without its lineage: its readers learn no causes. */
  void leftOut(String what) {
    Counts.count("unstored_lineage", datastore());
    Counts.logOnce(
        "unstored_lineage",
        datastore(),
        what,
        () -> what + " on '" + datastore() + "' could not store its lineage with the object");
  }

  /** Returns the write that made a version of an object. */
  WriteId written(Place place, String version) {
    return WriteId.ofOpaque(datastore(), place.named(), version).writtenAt(Time.hour());
  }

  /** Lets who reads depend on what was stored, and on the write that is shown. */
  Lineage found(Place place, String version, Map<String, String> metadata) {
    Lineage lineage = Metadata.lineageOf(metadata, datastore());
    if (!version.equals(Place.NO_VERSION)) {
      WriteId write = shown(place, version);
      recordShown(write);
      lineage = lineage.append(write);
    }
    recordRead(lineage);
    return lineage;
  }

  /** Returns the write that a read showed, by the name that its request knows, if it does. */
  private WriteId shown(Place place, String version) {
    return Antipode.current().only(datastore()).writes().stream()
        .filter(each -> version.equals(each.opaqueVersion()))
        .findFirst()
        .orElseGet(() -> written(place, version));
  }

  // Table 2.

  /**
   * Puts an object with the current lineage in its metadata, in one request.
   *
   * @return as {@link #write(String, byte[], Lineage)}
   * @throws SdkException as there
   */
  public Lineage write(String key, byte[] value) {
    return write(key, value, Antipode.current());
  }

  /**
   * Puts an object with a lineage in its metadata, in one request.
   *
   * @param lineage what the value depends on
   * @return the lineage with this write, which enters the current scope as well; where the bucket
   *     is not versioned, both are marked instead
   * @throws SdkException as the SDK does; without an answer the scope becomes incomplete
   */
  public Lineage write(String key, byte[] value, Lineage lineage) {
    Place place = place(key);
    Attempts attempts = new Attempts(false);
    PutObjectRequest.Builder put =
        PutObjectRequest.builder()
            .bucket(place.bucket())
            .key(key)
            .overrideConfiguration(
                options -> options.putExecutionAttribute(Attempts.key(), attempts));
    if (!lineage.isEmpty()) {
      @Nullable Map<String, String> metadata = Metadata.labelled(Map.of(), lineage);
      if (metadata == null) {
        leftOut("write");
      } else {
        put.metadata(metadata);
      }
    }
    return done(
        attempts,
        () -> client.putObject(put.build(), RequestBody.fromBytes(value)).versionId(),
        place,
        lineage);
  }

  /**
   * Deletes an object: its bucket gets a delete marker, for which readers can wait. A marker has no
   * metadata: who finds no object depends on none.
   *
   * @return as {@link #write(String, byte[], Lineage)}
   * @throws SdkException as there
   */
  public Lineage delete(String key, Lineage lineage) {
    Place place = place(key);
    Attempts attempts = new Attempts(false);
    DeleteObjectRequest delete =
        DeleteObjectRequest.builder()
            .bucket(place.bucket())
            .key(key)
            .overrideConfiguration(
                options -> options.putExecutionAttribute(Attempts.key(), attempts))
            .build();
    return done(attempts, () -> client.deleteObject(delete).versionId(), place, lineage);
  }

  private Lineage done(
      Attempts attempts, Supplier<@Nullable String> call, Place place, Lineage lineage) {
    @Nullable String version;
    try {
      version = call.get();
    } catch (RuntimeException error) {
      failed(attempts, error);
      throw error;
    }
    if (version == null || version.equals(Place.NO_VERSION)) {
      uncovered("a write met a bucket without versioning");
      return lineage.marked(new Incomplete(datastore(), "unsampled"));
    }
    WriteId write = written(place, version);
    Recording.recordWrite(write);
    return lineage.append(write);
  }

  /**
   * Returns the content of an object, and what it depends on: its stored lineage, and the write
   * that it shows. It enters the current scope. One request; under a floor the read is held back
   * until this region shows that.
   *
   * @throws io.antipode.barrier.UnmetException if a floor was not met
   * @throws SdkException as the SDK does
   */
  public Found read(String key) {
    Place place = place(key);
    GetObjectRequest request = GetObjectRequest.builder().bucket(place.bucket()).key(key).build();
    StaleRead stale = prepared(request).stale();
    ResponseBytes<GetObjectResponse> got;
    try {
      got = client.getObjectAsBytes(request);
    } catch (NoSuchKeyException error) {
      stale.answered();
      return new Found(null, Lineage.empty());
    }
    stale.answered();
    @Nullable String version = got.response().versionId();
    return new Found(
        got.asByteArray(),
        found(place, version == null ? Place.NO_VERSION : version, got.response().metadata()));
  }

  /**
   * Returns what will be found by {@link #read}, in the current scope.
   *
   * @param executor whose threads read, and wait while the read is held back
   */
  public CompletableFuture<Found> readAsync(String key, Executor executor) {
    return inScope(() -> read(key), executor);
  }

  private Place place(String key) {
    if (bucket == null) {
      throw new ConfigurationException(
          "the shim of '"
              + datastore()
              + "' writes and reads no values: say S3Shim.Builder.bucket()");
    }
    return new Place(bucket, key, region());
  }

  /** Unregisters, and closes every client of the shim's own; may be called again. */
  @Override
  public void close() {
    super.close();
    client.close();
  }
}
