package io.antipode.spring;

import io.antipode.redis.InstrumentedJedis;
import io.antipode.redis.RedisShim;
import org.apache.commons.pool2.impl.GenericObjectPoolConfig;
import org.springframework.dao.DataAccessException;
import org.springframework.data.redis.RedisConnectionFailureException;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisClientConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.JedisPoolConfig;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.util.Pool;

/** A factory of Jedis' connections, as another one is configured, that instruments them. */
final class InstrumentedJedisConnectionFactory extends JedisConnectionFactory {
  private final InstrumentedJedis clients;

  InstrumentedJedisConnectionFactory(
      JedisConnectionFactory plain, RedisStandaloneConfiguration server, RedisShim shim) {
    super(server, plain.getClientConfiguration());
    setConvertPipelineAndTxResults(plain.getConvertPipelineAndTxResults());
    setPhase(plain.getPhase());
    setAutoStartup(plain.isAutoStartup());
    setEarlyStartup(plain.isEarlyStartup());
    this.clients =
        InstrumentedJedis.of(
            shim,
            new HostAndPort(server.getHostName(), server.getPort()),
            config(server, plain.getClientConfiguration()));
  }

  private static JedisClientConfig config(
      RedisStandaloneConfiguration server, JedisClientConfiguration client) {
    DefaultJedisClientConfig.Builder config =
        DefaultJedisClientConfig.builder()
            .connectionTimeoutMillis(Math.toIntExact(client.getConnectTimeout().toMillis()))
            .socketTimeoutMillis(Math.toIntExact(client.getReadTimeout().toMillis()))
            .database(server.getDatabase())
            .ssl(client.isUseSsl());
    client.getClientName().ifPresent(config::clientName);
    if (server.getUsername() != null && !server.getUsername().isEmpty()) {
      config.user(server.getUsername());
    }
    server.getPassword().toOptional().map(String::new).ifPresent(config::password);
    client.getSslSocketFactory().ifPresent(config::sslSocketFactory);
    client.getSslParameters().ifPresent(config::sslParameters);
    client.getHostnameVerifier().ifPresent(config::hostnameVerifier);
    client.getCustomizer().ifPresent(customizer -> customizer.customize(config));
    return config.build();
  }

  @Override
  protected Pool<Jedis> createRedisPool() {
    GenericObjectPoolConfig<Jedis> config = getPoolConfig();
    return clients.pool(config == null ? new JedisPoolConfig() : config);
  }

  @Override
  protected Jedis fetchJedisConnector() throws DataAccessException {
    if (getUsePool()) {
      return super.fetchJedisConnector();
    }
    try {
      return clients.jedis();
    } catch (JedisException error) {
      throw new RedisConnectionFailureException("Cannot get Jedis connection", error);
    }
  }
}
