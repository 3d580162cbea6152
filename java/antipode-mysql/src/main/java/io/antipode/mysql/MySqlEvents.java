package io.antipode.mysql;

import io.antipode.barrier.AsOfNow;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shims;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.runtime.KillSwitch;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Lineages of events that are read from a binary log of MySQL or MariaDB: each is the transaction
 * that emitted it.
 */
public final class MySqlEvents {
  private static final Duration TIMEOUT = Duration.ofSeconds(5);
  private static final Pattern MARIADB =
      Pattern.compile("\\s*[0-9]+-[0-9]+-[0-9]+\\s*(?:,\\s*[0-9]+-[0-9]+-[0-9]+\\s*)*");

  /** The largest number of a transaction of MySQL's. */
  private static final long MOST_NUMBER = Long.MAX_VALUE - 1;

  private MySqlEvents() {}

  /**
   * Returns what an event depends on. MySQL's numbers may have gaps: where they begin is asked of
   * the primary, unless a client here knows it. One of another history has an entry that barriers
   * refuse.
   *
   * @param datastore the name that every service spells alike
   * @param gtid of the transaction, as {@code SHOW BINLOG EVENTS} spells it: {@code uuid:number} or
   *     {@code uuid:tag:number}, MariaDB's {@code domain-server-number}; several stand for all
   * @return the transaction; incomplete ({@code unsampled}) where the primary does not answer
   * @throws IllegalArgumentException if it is none
   * @throws io.antipode.ConfigurationException if no client here reaches the primary
   */
  public static Lineage lineage(String datastore, String gtid) {
    boolean isMariaDb = MARIADB.matcher(Objects.requireNonNull(gtid, "gtid")).matches();
    Flavor flavor = isMariaDb ? Flavor.MARIADB : Flavor.MYSQL;
    Lineage lineage = checked(flavor, gtid, new Runs(), datastore);
    if (KillSwitch.isDisabled()) {
      return Lineage.empty();
    }
    if (isMariaDb) {
      return lineage; // Its numbers name their place alone.
    }
    Runs runs = known(datastore);
    if (runs == null && !AsOfNow.positions(datastore, TIMEOUT).isEmpty()) {
      runs = known(datastore);
    }
    return runs == null
        ? Lineage.empty().marked(new Incomplete(datastore, "unsampled"))
        : checked(flavor, gtid, runs, datastore);
  }

  private static Lineage checked(Flavor flavor, String gtid, Runs runs, String datastore) {
    try {
      List<WriteId> found = Positions.minted(flavor, gtid, runs, datastore);
      if (!found.isEmpty() && found.stream().allMatch(each -> isNumber(flavor, each.version()))) {
        return Lineage.of(found.toArray(new WriteId[0]));
      }
      throw new NoGtidException(gtid);
    } catch (NoGtidException error) {
      throw new IllegalArgumentException(error.getMessage(), error);
    }
  }

  private static boolean isNumber(Flavor flavor, long number) {
    return number != 0
        && (flavor == Flavor.MARIADB || Long.compareUnsigned(number, MOST_NUMBER) <= 0);
  }

  /** Returns where runs begin, as a client here found; of the primary where there is one. */
  private static @Nullable Runs known(String datastore) {
    return Shims.of(datastore).stream()
        .filter(MySqlShim.class::isInstance)
        .map(MySqlShim.class::cast)
        .sorted(Comparator.comparing(shim -> shim.readsFrom() != ReadsFrom.PRIMARY))
        .map(MySqlShim::runs)
        .filter(Runs::isKnown)
        .findFirst()
        .orElse(null);
  }
}
