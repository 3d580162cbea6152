package io.antipode.aws;

import io.antipode.ConfigurationException;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Shim;
import io.antipode.barrier.ShimBuilder;
import io.antipode.request.Recording;
import io.antipode.runtime.KillSwitch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.awscore.AwsClient;
import software.amazon.awssdk.awscore.client.builder.AwsClientBuilder;
import software.amazon.awssdk.core.SdkRequest;
import software.amazon.awssdk.core.client.config.ClientOverrideConfiguration;
import software.amazon.awssdk.core.interceptor.ExecutionInterceptor;

/** What the shims of AWS's services share: clients of the SDK whose calls they follow. */
public abstract class AwsShim extends Shim {
  private final String store;
  private final ExecutorService waiting;

  /**
   * Makes what a builder describes.
   *
   * @param store which kind of store it is, in logs
   */
  protected AwsShim(ShimBuilder<?, ?> builder, String store) {
    super(builder);
    this.store = store;
    this.waiting =
        Executors.newCachedThreadPool(
            work -> {
              Thread thread = new Thread(work, "antipode-" + store);
              thread.setDaemon(true);
              return thread;
            });
  }

  /**
   * Begins a call of one of its clients.
   *
   * @param operation as the API names it
   * @param whole the application's call, of which the SDK makes this one; null where it is that
   */
  protected abstract AwsCall call(String operation, SdkRequest request, @Nullable AwsCall whole);

  /** Returns the region of its clients; empty where it has those of several. */
  public String region() {
    return "";
  }

  /** Returns what its region shows of what a floor demands. */
  Observation observe(Floor floor) throws Exception {
    throw new IllegalStateException("no read of " + datastore() + " waits");
  }

  /** Refuses a client with which it cannot work. */
  void check(AwsClient made) {}

  /** Returns a client with one more interceptor; its builder stays as the application made it. */
  protected static <B extends AwsClientBuilder<B, C>, C> C built(
      B builder, ExecutionInterceptor interceptor) {
    ClientOverrideConfiguration given = builder.overrideConfiguration();
    B unused =
        builder.overrideConfiguration(
            given.toBuilder().addExecutionInterceptor(interceptor).build());
    C made = builder.build();
    unused = builder.overrideConfiguration(given);
    return made;
  }

  /** Returns the client that a builder makes, whose calls are followed. */
  protected final <B extends AwsClientBuilder<B, C>, C extends AwsClient> C instrumented(
      B builder) {
    if (KillSwitch.isDisabled()) {
      return builder.build();
    }
    return checked(built(builder, new AwsInterceptor(this)));
  }

  /**
   * Returns an asynchronous client, as {@link #instrumented}. No thread of the application's waits.
   *
   * @param api of the client
   */
  protected final <B extends AwsClientBuilder<B, C>, C extends AwsClient> C instrumentedAsync(
      Class<C> api, B builder) {
    if (KillSwitch.isDisabled()) {
      return builder.build();
    }
    AwsInterceptor interceptor = new AwsInterceptor(this);
    C made = checked(built(builder, interceptor));
    return InstrumentedAsync.face(api, made, interceptor, waiting);
  }

  private <C extends AwsClient> C checked(C made) {
    try {
      check(made);
    } catch (ConfigurationException error) {
      made.close();
      throw error;
    }
    return made;
  }

  /** Returns whether the calls of a client are followed already, by any shim. */
  public static boolean isInstrumented(AwsClient client) {
    return Faces.isFollowed(client);
  }

  /**
   * Returns what is used in the place of a client that was made before, and whose calls are
   * followed: each of its requests brings the interceptor.
   *
   * @param api of the client, synchronous
   */
  protected final <C extends AwsClient> C around(Class<C> api, C made) {
    if (KillSwitch.isDisabled()) {
      return made;
    }
    check(made);
    return MadeBefore.face(api, made, new AwsInterceptor(this));
  }

  /**
   * Returns the same of an asynchronous client.
   *
   * @param api of the client
   */
  protected final <C extends AwsClient> C aroundAsync(Class<C> api, C made) {
    if (KillSwitch.isDisabled()) {
      return made;
    }
    check(made);
    AwsInterceptor interceptor = new AwsInterceptor(this);
    return InstrumentedAsync.face(
        api, MadeBefore.face(api, made, interceptor), interceptor, waiting);
  }

  /** Begins a call that the shim makes itself, and waits as an instrumented client does. */
  protected final AwsCall prepared(SdkRequest request) {
    AwsInterceptor made = new AwsInterceptor(this);
    AwsCall call = made.begin(request, true);
    made.prepare(call, request);
    return call;
  }

  /** Notes a write of which the position is not known. */
  public final void uncovered(String cause) {
    countUncovered(store, cause);
    Recording.markIncomplete(datastore(), "unsampled");
  }

  /** Notes that a write of the shim's own ended by an error. */
  protected final void failed(Attempts attempts, Throwable error) {
    if (attempts.leaveDoubt(error)) {
      Recording.markIncomplete(datastore(), "in_doubt");
    }
  }

  @Override
  public void close() {
    super.close();
    waiting.shutdown();
  }
}
