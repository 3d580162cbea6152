package io.antipode.spring;

import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;

/**
 * The pools whose connections record writes and hold reads back.
 *
 * @param pools by the name of the {@code DataSource} bean; Boot's own is {@code dataSource}
 */
@ConfigurationProperties("antipode.postgresql")
public record AntipodePostgreSqlProperties(Map<String, JdbcPoolProperties> pools) {
  /** Takes no pools for none. */
  public AntipodePostgreSqlProperties(@Nullable Map<String, JdbcPoolProperties> pools) {
    this.pools = pools == null ? Map.of() : Map.copyOf(pools);
  }
}
