import java.util.Map;

/** Prints what the library adds to calls: tests/budgets/test_java.py names a store and its server. */
public final class BudgetsProgram {
  /** Counts the calls of one store, whose address is a URL. */
  @FunctionalInterface
  private interface Store {
    void count(String url) throws Exception;
  }

  private static final Map<String, Store> STORES =
      Map.of(
          "core", url -> CoreCalls.count(),
          "mongodb", MongoDbCalls::count,
          "mysql", JdbcCalls::countMySql,
          "postgresql", JdbcCalls::countPostgreSql,
          "rabbitmq", RabbitMqCalls::count,
          "redis", RedisCalls::count);

  public static void main(String[] words) throws Exception {
    STORES.get(words[0]).count(words[1]);
    System.exit(0);
  }
}
