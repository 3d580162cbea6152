package io.antipode.mysql;

import io.antipode.barrier.UnreachableException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * The server behind a connection, and those above it, which are asked on connections of a moment.
 */
final class LinkServers implements Servers {
  /** How long asking a server above may take: the poll that needs it is itself bounded. */
  private static final Duration ASK = Duration.ofMillis(500);

  /** For how long one that did not answer is not asked again: polls are shared. */
  private static final long QUIET_NS = 2_000_000_000;

  /** Who a server is, and which group it is in; needs no privilege. */
  private static final String IDENTITY =
      "SHOW GLOBAL VARIABLES WHERE Variable_name IN"
          + " ('server_uuid', 'group_replication_group_name')";

  private static final String CLUSTER =
      "SHOW GLOBAL STATUS WHERE Variable_name IN"
          + " ('wsrep_cluster_status', 'wsrep_cluster_state_uuid', 'wsrep_cluster_conf_id')";

  /** Whom a member of a group is in touch with; needs SELECT on that table. */
  private static final String MEMBERS =
      "SELECT MEMBER_ID AS member FROM performance_schema.replication_group_members"
          + " WHERE MEMBER_STATE = 'ONLINE'";

  private final Link link;
  private final Address address;
  private final Silent silent;
  private final long untilNs;

  /** Servers above that did not answer, and since when. Thread-safe. */
  static final class Silent {
    private record Failed(long atNs, String cause) {}

    private final Map<String, Failed> failed = new ConcurrentHashMap<>();
  }

  LinkServers(Link link, Address address, Silent silent, Duration timeout) {
    this.link = link;
    this.address = address;
    this.silent = silent;
    this.untilNs = System.nanoTime() + timeout.toNanos();
  }

  @Override
  public ServerState state(@Nullable Source above) throws RefusedException {
    Facts facts = link.facts();
    try {
      if (facts.flavor() == Flavor.MYSQL) {
        Map<String, String> row =
            ask(above, "SELECT @@GLOBAL.gtid_executed AS executed, @@GLOBAL.read_only AS read_only")
                .get(0);
        return new ServerState.MySql(
            GtidSet.parse(row.getOrDefault("executed", "")), isWritable(row));
      }
      Map<String, String> row =
          ask(
                  above,
                  "SELECT @@GLOBAL.gtid_slave_pos AS applied, @@GLOBAL.gtid_binlog_state AS logged,"
                      + " @@GLOBAL.read_only AS read_only")
              .get(0);
      return new ServerState.MariaDb(
          MariaDbState.parse(row.getOrDefault("applied", "")),
          MariaDbState.parse(row.getOrDefault("logged", "")),
          isWritable(row),
          facts.serverId(),
          facts.isStrict());
    } catch (NoGtidException error) {
      throw RefusedException.lasting(String.valueOf(error.getMessage()), 0);
    }
  }

  private static boolean isWritable(Map<String, String> row) {
    return row.getOrDefault("read_only", "").equals("0");
  }

  /** Returns the rows of the state of replication of the server at hand. */
  List<Map<String, String>> replication() throws RefusedException {
    return ask(null, statement());
  }

  private String statement() {
    Facts facts = link.facts();
    if (facts.flavor() == Flavor.MARIADB) {
      return "SHOW ALL SLAVES STATUS";
    }
    return facts.hasReplicaStatus() ? "SHOW REPLICA STATUS" : "SHOW SLAVE STATUS";
  }

  @Override
  public List<Source> sources(@Nullable Source above) throws RefusedException {
    List<Source> sources = new ArrayList<>();
    for (Map<String, String> row : ask(above, statement())) {
      try {
        sources.add(source(row));
      } catch (NoGtidException error) {
        throw RefusedException.lasting(String.valueOf(error.getMessage()), 0);
      }
    }
    return sources;
  }

  @Override
  public Set<String> primaries(@Nullable Source above) throws RefusedException {
    boolean isMySql = link.facts().flavor() == Flavor.MYSQL;
    Map<String, String> said = new HashMap<>();
    for (Map<String, String> row : ask(above, isMySql ? IDENTITY : CLUSTER)) {
      said.put(row.getOrDefault("Variable_name", ""), row.getOrDefault("Value", ""));
    }
    return isMySql ? members(above, said) : cluster(above, said);
  }

  private Set<String> members(@Nullable Source above, Map<String, String> said)
      throws RefusedException {
    Set<String> primaries = new HashSet<>();
    primaries.add(said.getOrDefault("server_uuid", "").toLowerCase(Locale.ROOT));
    if (!said.getOrDefault("group_replication_group_name", "").isEmpty()) {
      for (Map<String, String> row : ask(above, MEMBERS)) {
        primaries.add(row.getOrDefault("member", "").toLowerCase(Locale.ROOT));
      }
    }
    return primaries;
  }

  private Set<String> cluster(@Nullable Source above, Map<String, String> said)
      throws RefusedException {
    String status = said.getOrDefault("wsrep_cluster_status", "");
    if (status.equals("Primary")) {
      return Set.of(
          said.getOrDefault("wsrep_cluster_state_uuid", "")
              + ":"
              + said.getOrDefault("wsrep_cluster_conf_id", ""));
    }
    if (!status.isEmpty() && !status.equals("Disconnected")) {
      return Set.of();
    }
    Map<String, String> row = ask(above, "SELECT @@GLOBAL.server_id AS server_id").get(0);
    return Set.of(row.getOrDefault("server_id", ""));
  }

  @Override
  public String grants() {
    return link.facts().flavor() == Flavor.MYSQL
        ? "REPLICATION CLIENT"
        : "BINLOG MONITOR, REPLICA MONITOR";
  }

  private Source source(Map<String, String> row) throws NoGtidException {
    boolean isMySql = link.facts().flavor() == Flavor.MYSQL;
    String port = of(row, "Port");
    List<String> trouble = new ArrayList<>();
    for (String which : List.of("Last_IO_Error", "Last_SQL_Error")) {
      if (!row.getOrDefault(which, "").isEmpty()) {
        trouble.add(row.getOrDefault(which, ""));
      }
    }
    return new Source(
        of(row, "Host"),
        port.isEmpty() ? 3306 : Integer.parseInt(port),
        isMySql ? of(row, "UUID").toLowerCase(Locale.ROOT) : of(row, "Server_Id"),
        isMySql
            ? new Source.Received.MySql(GtidSet.parse(row.getOrDefault("Retrieved_Gtid_Set", "")))
            : new Source.Received.MariaDb(MariaDbState.parse(row.getOrDefault("Gtid_IO_Pos", ""))),
        String.join("; ", trouble),
        row.getOrDefault("Replica_IO_Running", row.getOrDefault("Slave_IO_Running", ""))
            .equals("Yes"));
  }

  private static String of(Map<String, String> row, String name) {
    return row.getOrDefault("Source_" + name, row.getOrDefault("Master_" + name, ""));
  }

  private List<Map<String, String>> ask(@Nullable Source above, String sql)
      throws RefusedException {
    long nowNs = System.nanoTime();
    if (above == null) {
      try {
        link.setTimeout(Duration.ofNanos(untilNs - nowNs));
      } catch (SQLException error) {
        throw new UnreachableException(String.valueOf(error.getMessage()), error);
      }
      return link.ask(sql);
    }
    if (untilNs - nowNs < ASK.toNanos()) {
      throw RefusedException.passing("no time left to ask the source");
    }
    Address there = address.at(above.host(), above.port());
    Silent.Failed failed = silent.failed.get(there.toString());
    if (failed != null && nowNs - failed.atNs < QUIET_NS) {
      throw RefusedException.passing(failed.cause);
    }
    try (Link up = connect(there)) {
      return up.ask(sql);
    } catch (UnreachableException error) {
      String cause = String.valueOf(error.getMessage());
      silent.failed.put(there.toString(), new Silent.Failed(System.nanoTime(), cause));
      throw RefusedException.passing(cause);
    }
  }

  private static Link connect(Address there) throws RefusedException {
    try {
      return Link.connect(there, ASK);
    } catch (SQLException error) {
      throw Errors.refused(error);
    }
  }
}
