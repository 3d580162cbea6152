package io.antipode.mysql;

import io.antipode.ConfigurationException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * What is known of a server as long as its process lives.
 *
 * @param server its incarnation
 * @param hasReplicaStatus whether it knows {@code SHOW REPLICA STATUS}
 * @param isStrict MariaDB's {@code gtid_strict_mode}
 * @param groupBlock how many numbers a member of a group is given at once; 0 for any other server
 * @param executed MySQL's {@code gtid_executed} at that moment
 * @param problems what has to be configured before anybody can wait for positions there
 * @param unminted what has to be configured before its own writes have positions
 * @param proxied why another server may be read than the one that answers; empty where none may
 * @param filters what its replication leaves out, as far as its variables say
 */
record Facts(
    Flavor flavor,
    String server,
    String uuid,
    long serverId,
    boolean hasReplicaStatus,
    boolean isStrict,
    boolean isGroup,
    long groupBlock,
    GtidSet executed,
    Set<String> problems,
    Set<String> unminted,
    String proxied,
    List<String> filters) {
  private static final Pattern VERSION =
      Pattern.compile("(?:5\\.5\\.5-)?(\\d+)\\.(\\d+)(?:\\.(\\d+))?.*", Pattern.DOTALL);
  private static final String LOG_ON = "set log_bin (the binary log is off)";
  private static final String GTIDS_ON = "set gtid_mode=ON and enforce_gtid_consistency=ON";

  /**
   * Returns what a server's variables make of it.
   *
   * @throws RefusedException if it names what it has executed in a way that nobody knows
   */
  static Facts of(Map<String, String> variables, String started, String proxied)
      throws RefusedException {
    String name = variables.getOrDefault("version", "");
    Flavor flavor = Flavor.of(name);
    Matcher match = VERSION.matcher(name);
    int version =
        match.matches()
            ? number(match.group(1)) * 1_000_000
                + number(match.group(2)) * 1_000
                + number(match.group(3))
            : 0;
    String id = variables.getOrDefault("server_id", "0");
    String uuid = variables.getOrDefault("server_uuid", "").toLowerCase(Locale.ROOT);
    String group = variables.getOrDefault("group_replication_group_name", "");
    String block = variables.getOrDefault("group_replication_gtid_assignment_block_size", "0");
    boolean isMySql = flavor == Flavor.MYSQL;
    return new Facts(
        flavor,
        (isMySql ? uuid : variables.getOrDefault("server_uid", id)) + "@" + started,
        isMySql ? uuid : "",
        Long.parseLong(id),
        version >= 8_000_022,
        !isMySql && variables.getOrDefault("gtid_strict_mode", "").equals("ON"),
        isMySql && !group.isEmpty(),
        isMySql && !group.isEmpty() ? Long.parseUnsignedLong(block) : 0,
        isMySql ? executed(variables.getOrDefault("gtid_executed", "")) : GtidSet.EMPTY,
        problems(flavor, version, variables),
        unminted(variables),
        proxied,
        filters(variables));
  }

  private static GtidSet executed(String text) throws RefusedException {
    try {
      return GtidSet.parse(text);
    } catch (NoGtidException error) {
      throw RefusedException.lasting("gtid_executed cannot be read: " + error.getMessage(), 0);
    }
  }

  private static int number(@Nullable String digits) {
    return digits == null ? 0 : Integer.parseInt(digits);
  }

  private static Set<String> problems(Flavor flavor, int version, Map<String, String> variables) {
    Set<String> problems = new TreeSet<>();
    boolean isMySql = flavor == Flavor.MYSQL;
    if (version < (isMySql ? 8_000_000 : 10_006_000)) {
      problems.add(
          "it is version "
              + variables.get("version")
              + ": "
              + (isMySql ? "8.0" : "10.6")
              + " or later is needed");
    }
    if (isMySql) {
      if (variables.getOrDefault("gtid_mode", "").equals("OFF")) {
        problems.add(GTIDS_ON);
      }
      return problems;
    }
    // What a MariaDB server has executed is known by its binary log.
    if (!isLogging(variables)) {
      problems.add(LOG_ON);
    }
    if (!variables.getOrDefault("log_slave_updates", "").equals("ON")) {
      problems.add("set log_slave_updates=ON");
    }
    return problems;
  }

  private static Set<String> unminted(Map<String, String> variables) {
    Set<String> unminted = new TreeSet<>();
    if (!isLogging(variables)) {
      unminted.add(LOG_ON);
    }
    if (variables.getOrDefault("gtid_mode", "").startsWith("OFF")) {
      unminted.add(GTIDS_ON);
    }
    return unminted;
  }

  private static boolean isLogging(Map<String, String> variables) {
    return Set.of("ON", "1").contains(variables.getOrDefault("log_bin", ""));
  }

  /** Returns the filters among variables, or columns of the status of replication. */
  static List<String> filters(Map<String, String> settings) {
    List<String> filters = new ArrayList<>();
    settings.forEach(
        (name, value) -> {
          String lower = name.toLowerCase(Locale.ROOT);
          // Servers that are ignored are those of a ring: their writes have come round.
          if (lower.startsWith("replicate_") && !lower.endsWith("server_ids") && !value.isEmpty()) {
            filters.add(lower + "=" + value);
          }
        });
    return filters;
  }

  /** Returns why its writes have no positions; empty where they have. */
  List<String> lacking() {
    return Stream.concat(problems.stream(), unminted.stream()).distinct().toList();
  }

  /**
   * Refuses a server where nobody can wait for positions.
   *
   * @throws ConfigurationException that names what to change
   */
  void require(String datastore) {
    if (!problems.isEmpty()) {
      throw new ConfigurationException(
          datastore
              + " is on a "
              + flavor
              + " server without positions to wait for: "
              + String.join("; ", problems));
    }
  }
}
