package io.antipode.spring;

import io.antipode.barrier.Places;
import io.antipode.redis.RedisShim;
import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.api.StatefulConnection;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.DirectFieldAccessor;
import org.springframework.data.redis.RedisConnectionFailureException;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnection.PipeliningFlushPolicy;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionProvider;
import org.springframework.data.redis.connection.lettuce.LettucePoolingClientConfiguration;

/** A factory of Lettuce's connections, as another one is configured, that instruments them. */
final class InstrumentedLettuceConnectionFactory extends LettuceConnectionFactory {
  private final RedisShim shim;
  private volatile @Nullable Provider provider;

  /** Shared by reads that other factories send here; Lettuce closes it with the client. */
  private @Nullable StatefulRedisConnection<?, ?> shared;

  InstrumentedLettuceConnectionFactory(
      LettuceConnectionFactory plain, RedisStandaloneConfiguration server, RedisShim shim) {
    super(server, plain.getClientConfiguration());
    this.shim = shim;
    setShareNativeConnection(plain.getShareNativeConnection());
    setValidateConnection(plain.getValidateConnection());
    setEagerInitialization(plain.getEagerInitialization());
    setConvertPipelineAndTxResults(plain.getConvertPipelineAndTxResults());
    setPhase(plain.getPhase());
    setAutoStartup(plain.isAutoStartup());
    setEarlyStartup(plain.isEarlyStartup());
    Object flushing = new DirectFieldAccessor(plain).getPropertyValue("pipeliningFlushPolicy");
    if (flushing instanceof PipeliningFlushPolicy policy) { // It has no getter.
      setPipeliningFlushPolicy(policy);
    }
  }

  @Override
  protected LettuceConnectionProvider doCreateConnectionProvider(
      AbstractRedisClient client, RedisCodec<?, ?> codec) {
    Provider made = new Provider(super.doCreateConnectionProvider(client, codec), shim, places());
    provider = made;
    return made;
  }

  private @Nullable Places places() {
    return getClientConfiguration() instanceof LettucePoolingClientConfiguration pooled
        ? Places.of(pooled.getPoolConfig()::getMaxTotal)
        : null;
  }

  /** Returns an instrumented connection for reads that would be stale at a replica. */
  synchronized StatefulRedisConnection<?, ?> shared() {
    Provider by = provider;
    if (by == null) {
      throw new RedisConnectionFailureException("the primary's factory has not started");
    }
    if (shared == null || !shared.isOpen()) {
      shared = by.getConnection(StatefulRedisConnection.class);
    }
    return shared;
  }

  private record Provider(LettuceConnectionProvider plain, RedisShim shim, @Nullable Places places)
      implements LettuceConnectionProvider {
    @Override
    public <T extends StatefulConnection<?, ?>> T getConnection(Class<T> type) {
      return type.cast(instrumented(plain.getConnection(type)));
    }

    @Override
    public <T extends StatefulConnection<?, ?>> CompletionStage<T> getConnectionAsync(
        Class<T> type) {
      // A thread of the client's would wait for itself.
      return plain
          .getConnectionAsync(type)
          .thenApplyAsync(connection -> type.cast(instrumented(connection)));
    }

    private Object instrumented(StatefulConnection<?, ?> connection) {
      if (!(connection instanceof StatefulRedisConnection<?, ?> commands)
          || connection instanceof StatefulRedisPubSubConnection<?, ?>) {
        return connection;
      }
      return places == null ? shim.instrument(commands) : shim.instrument(commands, places);
    }

    @Override
    public CompletableFuture<Void> releaseAsync(StatefulConnection<?, ?> connection) {
      return connection.closeAsync();
    }
  }
}
