package io.antipode.request;

import io.antipode.ConfigurationException;
import io.antipode.Policy;
import io.antipode.Settings;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.runtime.CallSite;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** How what a client library did enters the current scope. For shims and integrations. */
public final class Recording {
  private Recording() {}

  /**
   * Enters a write, once the store has acknowledged it. One without a written hour gets the current
   * one. Without a scope it is counted and, once for each line of the application, logged.
   *
   * @throws ConfigurationException if there is no scope, and {@code on_unscoped} is {@code raise}
   */
  public static void recordWrite(WriteId write) {
    Scope scope = Scope.currentOrNull();
    if (scope != null) {
      scope.append(write);
    } else {
      unscoped("write", write.datastore(), Settings.current().onUnscoped());
    }
  }

  /** Enters what a read found: who reads depends on what was read. */
  public static void recordRead(Lineage lineage) {
    Scope scope = Scope.currentOrNull();
    if (scope != null && !lineage.isEmpty()) {
      scope.merge(lineage);
    }
  }

  /**
   * Enters what a sample returns, once the lineage is used or leaves: for a position that costs a
   * round trip.
   *
   * @param sample as {@link Scope#defer} takes it
   */
  public static void deferRead(Supplier<Lineage> sample) {
    Scope scope = Scope.currentOrNull();
    if (scope != null) {
      scope.defer(sample);
    }
  }

  /**
   * Notes, for a dry run, that a scope is of a message without a lineage. Whoever published it is
   * not instrumented, or did so outside of any scope: what the message depends on is not known, and
   * no read of its handler can be judged.
   *
   * @param datastore from which it was consumed
   */
  public static void recordUnlabelled(Scope scope, String datastore) {
    Observer observer = Observers.dryRun();
    if (observer != null) {
      observer.unlabelled(scope, datastore);
    }
  }

  /**
   * Notes that something is missing.
   *
   * @param subject the datastore or service
   * @param reason a word of the specification, such as {@code in_doubt}
   */
  public static void markIncomplete(String subject, String reason) {
    Counts.count("incomplete", subject);
    Scope scope = Scope.currentOrNull();
    if (scope != null) {
      scope.markIncomplete(subject, reason);
    }
  }

  /**
   * Notes that a transaction has written, or is over. Its writes have no positions yet, and no
   * other connection sees them.
   *
   * @param who whose transaction it is: a connection or session, the same as reads within it have
   * @param wrote whether it is open, and has written
   */
  public static void recordUncommitted(String datastore, Object who, boolean wrote) {
    if (!wrote) { // Each reply of a server may come here; most report no write.
      OpenWrites.ended(who);
      return;
    }
    Scope scope = Scope.currentOrNull();
    if (scope != null) {
      OpenWrites.wrote(scope, datastore, who);
    }
  }

  /**
   * Notes that a lineage is stored with a value, or put into a message: what its request wrote in
   * transactions that are open is not in it.
   *
   * @param within whose transaction stores it, as {@link #recordUncommitted} has it, with its own
   *     writes; null for nobody's
   */
  public static void recordStored(@Nullable Object within) {
    Scope scope = Scope.currentOrNull();
    if (scope == null) {
      return;
    }
    Set<String> told = OpenWrites.tellOfUnsent(scope, within);
    Observer observer = told.isEmpty() ? null : Observers.dryRun();
    if (observer != null) {
      observer.unsent(scope, told);
    }
  }

  /**
   * Counts something that found no scope and, once for each line of the application, logs it.
   *
   * @param what a noun: {@code write}, {@code read}, {@code barrier}
   * @param datastore what it was about; empty where about none
   * @param policy whether it is an error; null for no
   * @throws ConfigurationException if the policy is {@code RAISE}
   */
  public static void unscoped(String what, String datastore, @Nullable Policy policy) {
    if (KillSwitch.isDisabled()) {
      return;
    }
    Settings settings = Settings.current();
    String place = CallSite.find(settings.appPackages());
    String link = what.equals("read") ? " of '" : " to '";
    String about = what + (datastore.isEmpty() ? "" : link + datastore + "'") + " at " + place;
    Counts.count("unscoped_" + what, datastore);
    Observer observer = Observers.dryRun();
    if (observer != null) {
      observer.unscoped(what, datastore);
    } else if (policy == Policy.RAISE) {
      throw new ConfigurationException(about + " outside of a scope: " + advice(what));
    }
    Counts.logOnce(
        "unscoped_" + what, datastore, place, () -> about + " outside of a scope: " + advice(what));
  }

  /**
   * Returns the line of the application that makes a call, for {@link CallSite#handle} in the
   * thread that will record what the call wrote; null where nobody asks for it.
   */
  public static @Nullable StackTraceElement callSite() {
    boolean isAsked = Observers.dryRun() != null || Scope.currentOrNull() == null;
    return isAsked && !KillSwitch.isDisabled()
        ? CallSite.frame(Settings.current().appPackages())
        : null;
  }

  private static String advice(String what) {
    return what.equals("barrier")
        ? "it would wait for nothing. Run it within Antipode.scope(), give it a lineage, or start"
            + " its thread with Antipode.branch(); on_unscoped=report lets it pass"
        : "open one with Antipode.scope(), or let the integration of its framework, worker or"
            + " thread do so";
  }
}
