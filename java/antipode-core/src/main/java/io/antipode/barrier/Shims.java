package io.antipode.barrier;

import io.antipode.ConfigurationException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** Which shims this process has, and which of them polls a server. */
public final class Shims {
  private static final Map<String, List<Shim>> SHIMS = new ConcurrentHashMap<>();

  private Shims() {}

  /**
   * Makes a shim known to barriers. Registering it again changes nothing. A primary and a replica
   * of one datastore may both be registered: barriers wait at the replica. Several clients of one
   * server are one server for barriers: the first of them polls.
   */
  public static void register(Shim shim) {
    SHIMS.compute(
        shim.datastore(),
        (name, held) -> {
          List<Shim> all = new ArrayList<>(held == null ? List.of() : held);
          if (!all.contains(shim)) {
            all.add(shim);
          }
          return claimed(all);
        });
  }

  /** Forgets a shim, ends what it does for barriers, and fails who waits there. */
  static void unregister(Shim shim) {
    SHIMS.computeIfPresent(
        shim.datastore(),
        (name, held) -> {
          List<Shim> left = held.stream().filter(other -> other != shim).toList();
          return left.isEmpty() ? null : claimed(left);
        });
    shim.watcher().close();
  }

  /** Of the shims of one server the first polls. */
  private static List<Shim> claimed(List<Shim> shims) {
    List<Object> servers = new ArrayList<>();
    for (Shim shim : shims) {
      Object server = shim.server();
      Object claim = server == null ? shim : List.of(shim.readsFrom(), server);
      shim.setLooking(!servers.contains(claim));
      servers.add(claim);
    }
    return List.copyOf(shims);
  }

  /** Returns the registered shims of a datastore, in the order of their registration. */
  public static List<Shim> of(String datastore) {
    return SHIMS.getOrDefault(datastore, List.of());
  }

  /** Returns the names of all datastores with a shim. */
  public static Set<String> datastores() {
    return new TreeSet<>(SHIMS.keySet());
  }

  /** Returns the names of the threads that poll stores now. */
  public static List<String> watchers() {
    return SHIMS.values().stream()
        .flatMap(List::stream)
        .map(Shim::watcher)
        .filter(Watcher::isWatching)
        .map(Watcher::name)
        .sorted()
        .toList();
  }

  /**
   * Returns the shims that reach a primary of a datastore, one for each server. Several where a
   * fail-over left a client at the old primary, which may still answer as one.
   */
  static Collection<Shim> primaries(String datastore) {
    Map<Object, Shim> found = new LinkedHashMap<>();
    for (Shim shim : of(datastore)) {
      if (shim.canFence()) {
        Object server = shim.server();
        found.putIfAbsent(server == null ? shim : server, shim);
      }
    }
    return found.values();
  }

  static boolean anyIsWaitable() {
    return SHIMS.values().stream().flatMap(List::stream).anyMatch(Shim::isWaitable);
  }

  /**
   * Returns the shim to wait at now: the replica where there is one, else the primary; null where
   * none can poll.
   *
   * @throws ConfigurationException if nobody could say which of several the next read asks
   */
  static @Nullable Shim looking(String datastore) {
    List<Shim> looking = of(datastore).stream().filter(Shim::isLooking).toList();
    List<Shim> replicas =
        looking.stream().filter(shim -> shim.readsFrom() == ReadsFrom.REPLICA).toList();
    List<Shim> servers = replicas.isEmpty() ? looking : replicas;
    if (servers.size() > 1) {
      throw new ConfigurationException(
          servers.size()
              + (replicas.isEmpty() ? " primaries" : " replicas")
              + " are registered as "
              + datastore
              + ": a barrier cannot know which one the next read asks; "
              + (replicas.isEmpty() ? "say ReadsFrom.REPLICA where one is a replica, " : "")
              + "wait at the read, or give each its own datastore name");
    }
    return servers.isEmpty() ? null : servers.get(0);
  }

  /**
   * Returns whether a client here reads replicas of which only a read shows which one answers. What
   * a primary shows proves nothing of them: their reads wait, by floors.
   */
  static boolean readsElsewhere(String datastore) {
    return of(datastore).stream()
        .anyMatch(
            shim -> shim.readsFrom() == ReadsFrom.REPLICA && shim.holdsReads() && !shim.canPoll());
  }

  /** Returns whether it has such replicas, and only a primary that could be asked for them. */
  static boolean isSeenByReadsAlone(String datastore) {
    @Nullable Shim looking = looking(datastore);
    return looking != null && looking.readsFrom() != ReadsFrom.REPLICA && readsElsewhere(datastore);
  }

  /** Returns what polls the server that a client reads from; null where another may be polled. */
  static @Nullable Watcher sharedWatcher(Shim client) {
    @Nullable Shim looking;
    try {
      looking = looking(client.datastore());
    } catch (ConfigurationException error) {
      return null;
    }
    if (looking == null) {
      return null;
    }
    Object server = client.server();
    boolean isSame =
        looking == client
            || (server != null
                && server.equals(looking.server())
                && client.readsFrom() == looking.readsFrom());
    return isSame ? looking.watcher() : null;
  }
}
