package io.antipode.spring;

import io.antipode.barrier.ReadsFrom;
import io.antipode.redis.RedisShim;
import io.antipode.runtime.KillSwitch;
import io.antipode.spring.AntipodeRedisProperties.Connections;
import io.antipode.spring.DatastoreRule.Store;
import io.lettuce.core.RedisURI;
import io.lettuce.core.resource.ClientResources;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.FatalBeanException;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.DestructionAwareBeanPostProcessor;
import org.springframework.data.redis.RedisConnectionFailureException;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.util.ClassUtils;

/**
 * Puts an instrumented factory in the place of each that properties name, by its bean or by its
 * address, before that has begun to connect. Shims are closed with the application.
 */
final class RedisInstrumentation
    implements DestructionAwareBeanPostProcessor, SmartInitializingSingleton, DisposableBean {
  static final boolean HAS_JEDIS =
      ClassUtils.isPresent(
          "redis.clients.jedis.Jedis", RedisInstrumentation.class.getClassLoader());

  private final NamedBeans<Connections> properties;
  private final DatastoreRules rules;
  private final ListableBeanFactory beans;
  private final ObjectProvider<InstrumentedBeans> report;
  private final List<AutoCloseable> opened = new ArrayList<>();

  /** By their datastore and database, the factories that lead to the primary. */
  private final Map<String, InstrumentedLettuceConnectionFactory> primaries =
      new ConcurrentHashMap<>();

  /** By their beans, the datastore and database of factories that lead to a replica. */
  private final Map<String, String> replicas = new LinkedHashMap<>();

  private final List<String> replicasOfJedis = new ArrayList<>();

  RedisInstrumentation(
      AntipodeRedisProperties properties,
      DatastoreRules rules,
      ListableBeanFactory beans,
      ObjectProvider<InstrumentedBeans> report) {
    this.rules = rules;
    this.beans = beans;
    this.report = report;
    this.properties = new NamedBeans<>("antipode.redis.factories", properties.factories());
  }

  @Override
  public Object postProcessBeforeInitialization(Object bean, String name) {
    if (!(bean instanceof RedisConnectionFactory) || KillSwitch.isDisabled()) {
      return bean;
    }
    RedisPlace place = RedisPlace.of(bean);
    DatastoreRule rule = rules.find(Store.REDIS, place.places(), place.database());
    Connections named = properties.find(name);
    if (named == null && rule == null) {
      report
          .getObject()
          .notInstrumented(
              name, DatastoreRule.described(Store.REDIS, place.places(), place.database()));
      return bean;
    }
    Connections connections = Connections.of(named, rule);
    if (rule != null && Boolean.FALSE.equals(rule.oneServer())) {
      throw properties.refused(name, ": clients of Java take no one_server=false for Redis");
    }
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
    if (KillSwitch.isDisabled()) {
      return;
    }
    properties.requireBeans(beans, RedisConnectionFactory.class);
    if (StaleReads.goToPrimary()) {
      replicas.forEach(this::requirePrimary);
      for (String name : replicasOfJedis) {
        throw properties.refused(
            name, ": on-stale=primary needs Lettuce: Jedis makes no read at the primary");
      }
    }
  }

  private void requirePrimary(String name, String place) {
    if (!primaries.containsKey(place)) { // It may be made as it is needed.
      Map<String, ?> unused = beans.getBeansOfType(RedisConnectionFactory.class);
    }
    if (!primaries.containsKey(place)) {
      throw properties.refused(
          name,
          ": on-stale=primary needs a factory of Lettuce that connects to the primary of " + place);
    }
  }

  private InstrumentedLettuceConnectionFactory primary(String place) {
    InstrumentedLettuceConnectionFactory factory = primaries.get(place);
    if (factory == null) {
      throw new RedisConnectionFailureException("no factory connects to the primary of " + place);
    }
    return factory;
  }

  private InstrumentedLettuceConnectionFactory lettuce(
      String name, Connections connections, LettuceConnectionFactory plain) {
    @Nullable RedisStandaloneConfiguration server = plain.getStandaloneConfiguration();
    if (plain.isClusterAware()
        || plain.isRedisSentinelAware()
        || plain.getSocketConfiguration() != null
        || plain.getClientConfiguration().getReadFrom().isPresent()
        || server == null) {
      throw properties.refused(name, ": a factory is instrumented that connects to one server");
    }
    boolean isSecure = plain.getClientConfiguration().isUseSsl();
    RedisShim.Builder builder = shim(name, connections, server, isSecure);
    plain.getClientConfiguration().getClientResources().ifPresent(builder::resources);
    String place =
        properties.requireDatastore(name, connections.datastore()) + "/" + server.getDatabase();
    if (connections.readsFrom() == ReadsFrom.REPLICA) {
      builder.primary(() -> primary(place).shared());
    }
    RedisShim shim = registered(name, builder);
    InstrumentedLettuceConnectionFactory instrumented =
        new InstrumentedLettuceConnectionFactory(plain, server, shim);
    opened.add(0, instrumented::destroy);
    if (shim.readsFrom() == ReadsFrom.REPLICA) {
      replicas.put(name, place);
    } else {
      primaries.put(place, instrumented);
    }
    return instrumented;
  }

  private RedisShim registered(String name, RedisShim.Builder builder) {
    RedisShim shim = builder.register();
    opened.add(shim);
    report.getObject().instrumented(name, shim.datastore(), shim.readsFrom(), null);
    return shim;
  }

  private RedisShim.Builder shim(
      String name, Connections connections, RedisStandaloneConfiguration server, boolean isSecure) {
    RedisShim.Builder builder =
        RedisShim.builder(
            properties.requireDatastore(name, connections.datastore()),
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
      RedisShim shim = all.registered(name, all.shim(name, connections, server, isSecure));
      InstrumentedJedisConnectionFactory instrumented =
          new InstrumentedJedisConnectionFactory(plain, server, shim);
      if (shim.readsFrom() == ReadsFrom.REPLICA) {
        all.replicasOfJedis.add(name);
      }
      all.opened.add(0, instrumented::destroy);
      return instrumented;
    }
  }

  /** The shims' own connections go before the threads that they share with the application's. */
  @Override
  public void postProcessBeforeDestruction(Object bean, String name) {
    try {
      destroy();
    } catch (Exception error) {
      throw new FatalBeanException("what was opened before " + name + " does not close", error);
    }
  }

  @Override
  public boolean requiresDestruction(Object bean) {
    return bean instanceof ClientResources;
  }

  @Override
  public void destroy() throws Exception {
    List<AutoCloseable> closing = List.copyOf(opened);
    opened.clear();
    for (AutoCloseable each : closing) {
      each.close();
    }
  }
}
