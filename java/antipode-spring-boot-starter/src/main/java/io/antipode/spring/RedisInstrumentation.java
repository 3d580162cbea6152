package io.antipode.spring;

import io.antipode.barrier.ReadsFrom;
import io.antipode.redis.RedisShim;
import io.antipode.runtime.KillSwitch;
import io.antipode.spring.AntipodeRedisProperties.Connections;
import io.lettuce.core.RedisURI;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.util.ClassUtils;

/**
 * Puts an instrumented factory in the place of each that properties name, before that has begun to
 * connect. Shims are closed with the application.
 */
final class RedisInstrumentation
    implements BeanPostProcessor, SmartInitializingSingleton, DisposableBean {
  private static final boolean HAS_JEDIS =
      ClassUtils.isPresent(
          "redis.clients.jedis.Jedis", RedisInstrumentation.class.getClassLoader());

  private final NamedBeans<Connections> properties;
  private final ListableBeanFactory beans;
  private final List<AutoCloseable> opened = new ArrayList<>();

  RedisInstrumentation(AntipodeRedisProperties properties, ListableBeanFactory beans) {
    this.beans = beans;
    this.properties = new NamedBeans<>("antipode.redis.factories", properties.factories());
  }

  @Override
  public Object postProcessBeforeInitialization(Object bean, String name) {
    Connections connections = bean instanceof RedisConnectionFactory ? properties.find(name) : null;
    if (connections == null || KillSwitch.isDisabled()) {
      return bean;
    }
    properties.requireDatastore(name, connections.datastore());
    if (bean instanceof LettuceConnectionFactory lettuce) {
      return lettuce(name, connections, lettuce);
    }
    if (HAS_JEDIS && Jedis.isFactory(bean)) {
      return Jedis.instrumented(this, name, connections, bean);
    }
    throw properties.refused(name, ": of this kind of factory no connection can be instrumented");
  }

  @Override
  public void afterSingletonsInstantiated() {
    if (!KillSwitch.isDisabled()) {
      properties.requireBeans(beans, RedisConnectionFactory.class);
    }
  }

  private InstrumentedLettuceConnectionFactory lettuce(
      String name, Connections connections, LettuceConnectionFactory plain) {
    @Nullable RedisStandaloneConfiguration server = plain.getStandaloneConfiguration();
    if (plain.isClusterAware()
        || plain.isRedisSentinelAware()
        || plain.getClientConfiguration().getReadFrom().isPresent()
        || server == null) {
      throw properties.refused(name, ": a factory is instrumented that connects to one server");
    }
    boolean isSecure = plain.getClientConfiguration().isUseSsl();
    RedisShim.Builder builder = shim(connections, server, isSecure);
    plain.getClientConfiguration().getClientResources().ifPresent(builder::resources);
    InstrumentedLettuceConnectionFactory instrumented =
        new InstrumentedLettuceConnectionFactory(plain, server, registered(builder));
    opened.add(0, instrumented::destroy);
    return instrumented;
  }

  private RedisShim registered(RedisShim.Builder builder) {
    RedisShim shim = builder.register();
    opened.add(shim);
    return shim;
  }

  private static RedisShim.Builder shim(
      Connections connections, RedisStandaloneConfiguration server, boolean isSecure) {
    RedisShim.Builder builder =
        RedisShim.builder(
            connections.datastore(),
            connections.url() == null
                ? address(server, isSecure)
                : RedisURI.create(connections.url()));
    return connections.readsFrom() == ReadsFrom.REPLICA
        ? builder.readsFrom(ReadsFrom.REPLICA)
        : builder;
  }

  private static RedisURI address(RedisStandaloneConfiguration server, boolean isSecure) {
    RedisURI.Builder address =
        RedisURI.builder()
            .withHost(server.getHostName())
            .withPort(server.getPort())
            .withSsl(isSecure);
    if (server.getPassword().isPresent()) {
      char[] password = server.getPassword().get();
      if (server.getUsername() == null) {
        address.withPassword(password);
      } else {
        address.withAuthentication(server.getUsername(), password);
      }
    }
    return address.build();
  }

  /** What is known of Jedis, which may not be there. */
  private static final class Jedis {
    static boolean isFactory(Object bean) {
      return bean instanceof JedisConnectionFactory;
    }

    static Object instrumented(
        RedisInstrumentation all, String name, Connections connections, Object bean) {
      JedisConnectionFactory plain = (JedisConnectionFactory) bean;
      @Nullable RedisStandaloneConfiguration server = plain.getStandaloneConfiguration();
      if (plain.isRedisClusterAware() || plain.isRedisSentinelAware() || server == null) {
        throw all.properties.refused(
            name, ": a factory is instrumented that connects to one server");
      }
      boolean isSecure = plain.getClientConfiguration().isUseSsl();
      InstrumentedJedisConnectionFactory instrumented =
          new InstrumentedJedisConnectionFactory(
              plain, server, all.registered(shim(connections, server, isSecure)));
      all.opened.add(0, instrumented::destroy);
      return instrumented;
    }
  }

  @Override
  public void destroy() throws Exception {
    for (AutoCloseable each : opened) {
      each.close();
    }
  }
}
