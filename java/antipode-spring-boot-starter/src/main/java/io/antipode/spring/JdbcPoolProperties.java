package io.antipode.spring;

import io.antipode.barrier.ReadsFrom;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What properties say of one pool of JDBC's.
 *
 * @param datastore the name that every service spells alike; by default as {@code
 *     antipode.datastores} names the pool's address
 * @param readsFrom whether its server is the primary, which is the default, or a replica
 * @param url of that server, where barriers wait; by default that of the pool
 * @param username who asks there; by default the pool's
 * @param password by default the pool's
 * @param oneServer whether all statements of a connection are stated to reach one server; not by
 *     default
 * @param readonlyFunctions stored and loadable functions that write nothing, as statements have
 *     them; none by default
 * @param tables with whose rows lineages are stored, each with its schema before it where that is
 *     another; none by default
 */
public record JdbcPoolProperties(
    @Nullable String datastore,
    @Nullable ReadsFrom readsFrom,
    @Nullable String url,
    @Nullable String username,
    @Nullable String password,
    boolean oneServer,
    @Nullable Set<String> readonlyFunctions,
    @Nullable Set<String> tables) {
  /** Returns what is said of a pool by the name of its bean, and else by its address. */
  static JdbcPoolProperties of(@Nullable JdbcPoolProperties named, @Nullable DatastoreRule rule) {
    JdbcPoolProperties said =
        named == null
            ? new JdbcPoolProperties(null, null, null, null, null, false, null, null)
            : named;
    if (rule == null || (said.datastore != null && !said.datastore.equals(rule.datastore()))) {
      return said;
    }
    return new JdbcPoolProperties(
        rule.datastore(),
        said.readsFrom == null ? rule.readsFrom() : said.readsFrom,
        said.url,
        said.username,
        said.password,
        said.oneServer || Boolean.TRUE.equals(rule.oneServer()),
        said.readonlyFunctions,
        said.tables);
  }
}
