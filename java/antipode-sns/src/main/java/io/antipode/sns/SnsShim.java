package io.antipode.sns;

import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.aws.AwsCall;
import io.antipode.aws.AwsShim;
import io.antipode.barrier.Endpoint;
import io.antipode.barrier.ShimBuilder;
import io.antipode.barrier.UnreachableException;
import io.antipode.lineage.Lineage;
import io.antipode.request.Recording;
import io.antipode.request.ScopeBlock;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.SdkRequest;
import software.amazon.awssdk.services.sns.SnsAsyncClient;
import software.amazon.awssdk.services.sns.SnsAsyncClientBuilder;
import software.amazon.awssdk.services.sns.SnsClient;
import software.amazon.awssdk.services.sns.SnsClientBuilder;
import software.amazon.awssdk.services.sqs.SqsAsyncClient;
import software.amazon.awssdk.services.sqs.SqsAsyncClientBuilder;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.SqsClientBuilder;
import software.amazon.awssdk.services.sqs.model.Message;

/**
 * Topics of SNS and queues of SQS under one name: each message carries what its request depends on,
 * in one attribute, and its consumer handles it in a scope that begins with that. A message itself
 * is no dependency: nobody can wait for it.
 */
public final class SnsShim extends AwsShim {
  /** Of the process: who opens the scope of a message may have another shim than its client. */
  private static final Hidden HIDDEN = new Hidden();

  private final Publications publications;
  private final @Nullable String events;

  private SnsShim(Builder builder) {
    super(builder, "sns");
    this.events = builder.events;
    this.publications = new Publications(datastore());
  }

  /**
   * Returns a builder of a shim.
   *
   * @param datastore the name that every service spells alike
   */
  public static Builder builder(String datastore) {
    return new Builder(datastore);
  }

  /** Describes a shim. */
  public static final class Builder extends ShimBuilder<Builder, SnsShim> {
    private @Nullable String events;

    private Builder(String datastore) {
      super(datastore);
    }

    /**
     * Names the datastore of the buckets whose events come as messages. Without it, it is the one
     * of S3 that has a shim in this process; with several, such a message is incomplete.
     *
     * @throws ConfigurationException if antipode-s3, which reads them, is not on the class path
     */
    public Builder events(String datastore) {
      if (!BucketEvents.canRead()) {
        throw new ConfigurationException(
            "events of S3 need antipode-s3, which is not on the class path");
      }
      this.events = Objects.requireNonNull(datastore, "datastore");
      return this;
    }

    @Override
    protected Builder self() {
      return this;
    }

    @Override
    protected SnsShim build() {
      return new SnsShim(this);
    }
  }

  // What it is to barriers.

  @Override
  public boolean isWaitable() {
    return false;
  }

  @Override
  public boolean canPoll() {
    return false;
  }

  /** Is never called: it does not poll. */
  @Override
  public Endpoint openEndpoint(Duration timeout) throws UnreachableException {
    throw new UnreachableException("messages of SNS and SQS cannot be waited for");
  }

  // Clients of the application's.

  /**
   * Returns the client that a builder makes: the application's to use, and to close. What it
   * publishes carries the current lineage, in the attribute {@code antipode} and in no further
   * request.
   */
  public SnsClient instrument(SnsClientBuilder builder) {
    return instrumented(builder);
  }

  /** Returns an asynchronous client, as {@link #instrument(SnsClientBuilder)} does. */
  public SnsAsyncClient instrument(SnsAsyncClientBuilder builder) {
    return instrumentedAsync(SnsAsyncClient.class, builder);
  }

  /**
   * Returns the client that a builder makes: the application's to use, and to close. What it sends
   * carries the current lineage. It asks for the attribute of what it receives, and shows it where
   * the application named it: handle each message within {@link #message}.
   */
  public SqsClient instrument(SqsClientBuilder builder) {
    return instrumented(builder);
  }

  /** Returns an asynchronous client, as {@link #instrument(SqsClientBuilder)} does. */
  public SqsAsyncClient instrument(SqsAsyncClientBuilder builder) {
    return instrumentedAsync(SqsAsyncClient.class, builder);
  }

  /**
   * Returns what is used in the place of a client that was made before, such as a bean; it stays
   * the application's to close. Its waiters are not followed.
   */
  public SnsClient instrument(SnsClient made) {
    return around(SnsClient.class, made);
  }

  /**
   * Returns what is used in the place of a client that was made before, such as a bean; it stays
   * the application's to close. Its waiters are not followed.
   */
  public SnsAsyncClient instrument(SnsAsyncClient made) {
    return aroundAsync(SnsAsyncClient.class, made);
  }

  /**
   * Returns what is used in the place of a client that was made before, such as a bean; it stays
   * the application's to close. Its waiters are not followed.
   */
  public SqsClient instrument(SqsClient made) {
    return around(SqsClient.class, made);
  }

  /**
   * Returns what is used in the place of a client that was made before, such as a bean; it stays
   * the application's to close. Its waiters are not followed.
   */
  public SqsAsyncClient instrument(SqsAsyncClient made) {
    return aroundAsync(SqsAsyncClient.class, made);
  }

  @Override
  protected AwsCall call(String operation, SdkRequest request, @Nullable AwsCall whole) {
    return new Call(this, operation, request);
  }

  Publications publications() {
    return publications;
  }

  static Hidden hidden() {
    return HIDDEN;
  }

  // What is received.

  /**
   * Opens the scope of one message that an instrumented client received, raw or in the envelope of
   * SNS. It holds what the message depends on, and joins no scope that is open already; a barrier
   * in it waits for that. A message without a lineage starts an empty one; one that cannot be read,
   * or that no client here received, an incomplete one. An event of S3 has no lineage: its scope
   * has the version of the object that it reports ({@link Builder#events}).
   */
  public ScopeBlock message(Message message) {
    return messages(List.of(message));
  }

  /**
   * Opens the scope of several messages together, as {@link #message} does.
   *
   * @param messages of which each has a part in what is done
   */
  public ScopeBlock messages(Collection<Message> messages) {
    return opened(messages.stream().map(this::lineage));
  }

  /**
   * Opens the scope of an event of AWS Lambda: of all its records together. For events of SNS, of
   * SQS, and of S3, direct, by EventBridge or in a message of these.
   *
   * @param event as a handler that takes a map gets it
   */
  public ScopeBlock event(Map<String, ?> event) {
    @Nullable Object records = event.get("Records");
    if (records instanceof Collection<?> several) {
      return opened(
          several.stream().map(each -> each instanceof Map<?, ?> map ? lineage(map) : null));
    }
    boolean isItself = records == null && BucketEvents.in(event) != null;
    return opened(isItself ? Stream.of(event).map(this::lineage) : Stream.of());
  }

  /** Returns what a message depends on, by its label or as an event; null for neither. */
  private @Nullable Lineage lineage(Message message) {
    @Nullable Map<?, ?> event =
        HIDDEN.labelOf(message) == null ? BucketEvents.in(message.body()) : null;
    return event == null
        ? lineageOf(HIDDEN.textOf(message))
        : BucketEvents.lineage(event, datastore(), events);
  }

  private @Nullable Lineage lineage(Map<?, ?> record) {
    @Nullable String text = Received.textOf(record);
    @Nullable Map<?, ?> event = text == null ? BucketEvents.in(record) : null;
    return event == null ? lineageOf(text) : BucketEvents.lineage(event, datastore(), events);
  }

  private @Nullable Lineage lineageOf(@Nullable String text) {
    return text == null ? null : Received.lineage(text, datastore());
  }

  private ScopeBlock opened(Stream<@Nullable Lineage> found) {
    List<@Nullable Lineage> all = found.collect(Collectors.toList());
    Lineage[] known = all.stream().filter(Objects::nonNull).toArray(Lineage[]::new);
    ScopeBlock block = Antipode.scope(Lineage.empty().merge(known));
    if (known.length < all.size()) {
      Recording.recordUnlabelled(block.scope(), datastore());
    }
    return block;
  }
}
