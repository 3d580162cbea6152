package io.antipode.request;

import io.antipode.Settings;
import io.antipode.runtime.CallSite;
import io.antipode.runtime.Counts;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.WeakHashMap;
import org.jspecify.annotations.Nullable;

/**
 * What a request wrote in transactions that are still open: nobody else can see it yet. For the
 * library's own modules; no part of its interface. A value that does not change.
 */
public final class OpenWrites implements Attachment<OpenWrites> {
  private static final Key<OpenWrites> KEY = new Key<>(OpenWrites.class);

  /** The open transactions of this process by their connections or sessions. */
  private static final Map<Object, Transaction> OPEN =
      Collections.synchronizedMap(new WeakHashMap<>());

  private final List<Transaction> transactions;

  private OpenWrites(List<Transaction> transactions) {
    this.transactions = List.copyOf(transactions);
  }

  /** A transaction that has written and is not committed yet. */
  public static final class Transaction {
    private final String datastore;
    private final WeakReference<Object> who;
    private final StackTraceElement site;
    private volatile boolean isEnded;

    /** Whether something was sent from its request while it was open. */
    private volatile boolean isLeft;

    private Transaction(String datastore, Object who) {
      this.datastore = datastore;
      this.who = new WeakReference<>(who);
      this.site = CallSite.frame(Settings.current().appPackages());
    }

    /** Returns where it writes. */
    public String datastore() {
      return datastore;
    }

    /** Returns whether it is that of a connection or session; no null is one. */
    @SuppressWarnings("ReferenceEquality") // It is that very one.
    public boolean isOf(Object reader) {
      return who.get() == reader;
    }

    /** Returns whether it was committed or rolled back, or its connection is gone. */
    private boolean isOver() {
      return isEnded || who.get() == null;
    }
  }

  /** A transaction of a connection or session has written in a scope, and is open. */
  static void wrote(Scope scope, String datastore, Object who) {
    for (Transaction each : in(scope)) {
      if (each.isOf(who)) {
        return;
      }
    }
    Transaction open = OPEN.computeIfAbsent(who, absent -> new Transaction(datastore, who));
    scope.attach(KEY, new OpenWrites(List.of(open)));
  }

  /** The transaction of a connection or session is over, if it has one. */
  static void ended(Object who) {
    Transaction ended = OPEN.isEmpty() ? null : OPEN.remove(who);
    if (ended != null) {
      ended.isEnded = true;
    }
  }

  /** Returns the open transactions in which a scope has written. */
  public static List<Transaction> in(Scope scope) {
    OpenWrites held = scope.attachment(KEY);
    return held == null ? List.of() : running(held.transactions);
  }

  /**
   * Counts and, once for each pair of places, logs what cannot see the writes of a transaction.
   *
   * @param what a {@code read} or {@code barrier} of its datastore
   * @param scope of the request that does both
   */
  public static void tellOfUnseen(String what, Scope scope, Transaction transaction) {
    String datastore = transaction.datastore;
    Counts.count("read_before_commit", datastore);
    Observer observer = Observers.dryRun();
    if (observer != null) {
      observer.beforeCommit(scope, what, datastore, transaction.site);
    }
    String here = CallSite.find(Settings.current().appPackages());
    Counts.logOnce(
        "read_before_commit",
        datastore,
        here + " " + transaction.site,
        () ->
            what
                + " of '"
                + datastore
                + "' at "
                + here
                + " cannot see what the same request wrote at "
                + transaction.site
                + ", in a transaction that is not committed yet: commit it before, or read within"
                + " that transaction");
  }

  /**
   * Counts and, once for each pair of places, logs what leaves without the writes of a scope: a
   * message, a call or an answer. Each transaction that is open counts once. The position of its
   * writes does not exist yet.
   */
  static void tellOfUnsent(Scope scope) {
    Set<String> unused = tellOfUnsent(scope, null);
  }

  /**
   * The same of a lineage that is stored.
   *
   * @param within whose transaction stores it with the writes themselves; null for nobody's
   * @return the datastores of which it was said now
   */
  static Set<String> tellOfUnsent(Scope scope, @Nullable Object within) {
    List<Transaction> open = in(scope);
    if (open.isEmpty()) {
      return Set.of(); // As for nearly all that leaves.
    }
    Set<String> told = new TreeSet<>();
    for (Transaction each : open) {
      if (!each.isLeft && (within == null || !each.isOf(within))) {
        each.isLeft = true;
        told.add(each.datastore);
        tellOfUnsent(each);
      }
    }
    return told;
  }

  private static void tellOfUnsent(Transaction transaction) {
    String datastore = transaction.datastore;
    Counts.count("sent_before_commit", datastore);
    String here = CallSite.find(Settings.current().appPackages());
    Counts.logOnce(
        "sent_before_commit",
        datastore,
        here + " " + transaction.site,
        () ->
            "what leaves at "
                + here
                + " does not depend on what the same request wrote to '"
                + datastore
                + "' at "
                + transaction.site
                + ": its transaction is not committed yet, so the write has no position. Send it"
                + " after the commit");
  }

  @Override
  public OpenWrites joined(OpenWrites later) {
    List<Transaction> both = new ArrayList<>(running(transactions));
    for (Transaction each : later.transactions) {
      if (!both.contains(each)) {
        both.add(each);
      }
    }
    return new OpenWrites(both);
  }

  @Override
  public OpenWrites branched(Set<String> own) {
    return this;
  }

  private static List<Transaction> running(List<Transaction> transactions) {
    return transactions.stream().filter(each -> !each.isOver()).toList();
  }
}
