package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import io.antipode.barrier.Shim;
import io.antipode.barrier.Shims;
import io.antipode.spring.AntipodeRedisAutoConfiguration;
import io.lettuce.core.RedisURI;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.autoconfigure.data.redis.RedisAutoConfiguration;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.core.env.MapPropertySource;
import org.springframework.data.redis.core.StringRedisTemplate;

/** Spring Data's template over the connection of Lettuce that all its threads share. */
final class OpenSpringRedisClient extends OpenClient {
  private final AnnotationConfigApplicationContext application;
  private final StringRedisTemplate template;
  private final Shim shim;

  OpenSpringRedisClient(JsonNode given) {
    String datastore = Values.text(given, "datastore");
    String factory = "antipode.redis.factories.redis-connection-factory.";
    RedisURI address = OpenRedis.address(given);
    List<Shim> before = Shims.of(datastore);
    application = new AnnotationConfigApplicationContext();
    application
        .getEnvironment()
        .getPropertySources()
        .addFirst(
            new MapPropertySource(
                "given",
                Map.of(
                    "spring.data.redis.host",
                    address.getHost(),
                    "spring.data.redis.port",
                    address.getPort(),
                    "spring.data.redis.timeout",
                    address.getTimeout(),
                    factory + "datastore",
                    datastore,
                    factory + "reads-from",
                    given.path("reads_from").asText("primary"))));
    application.register(AntipodeRedisAutoConfiguration.class, RedisAutoConfiguration.class);
    application.refresh();
    template = application.getBean(StringRedisTemplate.class);
    shim =
        Shims.of(datastore).stream()
            .filter(each -> !before.contains(each))
            .findFirst()
            .orElseThrow();
  }

  @Override
  public Shim shim() {
    return shim;
  }

  @Override
  void put(String key, String value) {
    template.opsForValue().set(key, value);
  }

  @Override
  void remove(String key) {
    Boolean unused = template.delete(key);
  }

  @Override
  @Nullable String get(String key) {
    return template.opsForValue().get(key);
  }

  @Override
  public void close() {
    application.close();
  }
}
