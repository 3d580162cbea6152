package io.antipode.mysql;

import io.antipode.ConfigurationException;
import io.antipode.barrier.Endpoint;
import io.antipode.barrier.Observation;
import io.antipode.barrier.UnreachableException;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.runtime.Counts;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Polls what a server has executed. */
final class MySqlEndpoint implements Endpoint {
  private final MySqlShim shim;
  private final Link link;
  private final Address address;
  private final LinkServers.Silent silent;
  private final String promises;
  private final String caveat;
  private @Nullable ServerState before;

  /** How often positions were reset under the connection. */
  private int resets;

  /**
   * Connects to a server where positions can be waited for.
   *
   * @param promises the table of promises
   * @throws UnreachableException if there is no connection now
   * @throws RefusedException if the server does not let this user in
   * @throws ConfigurationException if it has no positions, or several may answer
   */
  MySqlEndpoint(
      MySqlShim shim, Address address, Duration timeout, LinkServers.Silent silent, String promises)
      throws RefusedException {
    this.shim = shim;
    this.address = address;
    this.silent = silent;
    this.promises = promises;
    try {
      this.link = Link.open(address, timeout, shim.runs());
    } catch (SQLException error) {
      throw Errors.refused(error);
    }
    try {
      shim.require(link.facts());
      this.caveat = caveat(shim.datastore(), filters(timeout));
    } catch (RuntimeException error) {
      link.close();
      throw error;
    }
  }

  /** Returns what replication leaves out here; MySQL says so to whoever may ask for its state. */
  private List<String> filters(Duration timeout) {
    try {
      List<String> filters = new ArrayList<>();
      for (Map<String, String> row :
          new LinkServers(link, address, silent, timeout).replication()) {
        filters.addAll(Facts.filters(row));
      }
      return filters.stream().distinct().toList();
    } catch (RefusedException error) {
      return link.facts().filters();
    }
  }

  private String caveat(String datastore, List<String> filters) {
    if (filters.isEmpty()) {
      return "";
    }
    String said =
        "replication leaves out rows there, whose positions come all the same: "
            + String.join("; ", filters);
    Counts.logOnce(
        "mysql_filters",
        datastore,
        address.toString(),
        () ->
            "the server where "
                + datastore
                + " is read shows positions of writes that it never"
                + " gets: "
                + said);
    return said;
  }

  private String server() {
    String server = link.facts().server();
    return resets == 0 ? server : server + "#" + resets;
  }

  @Override
  public Observation observe(Collection<WriteId> writes, Duration timeout) throws RefusedException {
    requireOneServer();
    LinkServers servers = new LinkServers(link, address, silent, timeout);
    Look.Shown shown = Look.at(servers, link.facts().isGroup(), writes);
    if (before != null && !shown.state().covers(before)) {
      resets++; // What was known does not count any more.
    }
    before = shown.state();
    Observation.Builder observation = Observation.of(server()).caveat(caveat);
    shown.tell(observation);
    return observation.build();
  }

  @Override
  public Observation promised(Collection<Promise> wanted, Duration timeout)
      throws RefusedException {
    requireOneServer();
    setTimeout(timeout);
    Observation.Builder observation = Observation.of(server());
    Records.of(link, promises, wanted).forEach(observation::promise);
    return observation.build();
  }

  /** One whose user may not ask for the sources says whether it takes writes. */
  @Override
  public boolean isReplica(Duration timeout) throws RefusedException {
    LinkServers servers = new LinkServers(link, address, silent, timeout);
    try {
      return !servers.replication().isEmpty();
    } catch (RefusedException error) {
      return !servers.state(null).isWritable();
    }
  }

  /** Another connection may have shown meanwhile that there are several. */
  private void requireOneServer() {
    shim.requireOneServer();
    shim.require(link.facts());
  }

  private void setTimeout(Duration timeout) {
    try {
      link.setTimeout(timeout);
    } catch (SQLException error) {
      throw new UnreachableException(String.valueOf(error.getMessage()), error);
    }
  }

  @Override
  public void interrupt() {
    link.interrupt();
  }

  @Override
  public void close() {
    link.close();
  }
}
