package io.antipode.spring;

import io.antipode.runtime.Counts;
import io.antipode.spring.DatastoreRule.Place;
import io.antipode.spring.DatastoreRule.Store;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.core.env.Environment;

/** Says, as an application starts, that it reaches a datastore of its rules by R2DBC. */
final class R2dbcWarning implements SmartInitializingSingleton {
  private static final Pattern URL =
      Pattern.compile(
          "r2dbcs?:(?:pool:|proxy:)*(postgres(?:ql)?|mysql|mariadb)(?::\\w+)?://(?:[^@/]*@)?"
              + "([^/?#]+)(?:/([^?#]*))?.*");

  private static final Pattern HOST = Pattern.compile("\\[?([^\\]]*?)]?(?::(\\d{1,5}))?");

  private final Environment environment;

  R2dbcWarning(Environment environment) {
    this.environment = environment;
  }

  @Override
  public void afterSingletonsInstantiated() {
    String url = environment.getProperty("spring.r2dbc.url", "");
    DatastoreRule rule = find(url, DatastoreRules.of(environment));
    if (rule != null) {
      Counts.LOG.warning(
          "spring.r2dbc.url leads to '"
              + rule.datastore()
              + "', and R2DBC is not instrumented: what it writes there is in no lineage, and what"
              + " it reads waits for nothing. Use JDBC for what others depend on");
    }
  }

  /** Returns the rule for the address in a URL; null for none. */
  static @Nullable DatastoreRule find(String url, DatastoreRules rules) {
    Matcher parts = URL.matcher(url);
    if (!parts.matches()) {
      return null;
    }
    boolean isPostgreSql = parts.group(1).startsWith("postgres");
    int port = isPostgreSql ? 5432 : 3306;
    List<Place> places =
        Arrays.stream(parts.group(2).split(",", -1)).map(host -> place(host, port)).toList();
    return rules.find(isPostgreSql ? Store.POSTGRESQL : Store.MYSQL, places, parts.group(3));
  }

  private static Place place(String text, int usual) {
    Matcher host = HOST.matcher(text);
    boolean isPort = host.matches() && host.group(2) != null;
    return Place.of(
        host.matches() ? host.group(1) : text, isPort ? Integer.parseInt(host.group(2)) : usual);
  }
}
