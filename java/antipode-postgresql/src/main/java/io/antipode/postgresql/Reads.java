package io.antipode.postgresql;

import io.antipode.postgresql.Catalogue.Verdict;
import io.antipode.request.Scope;
import java.sql.SQLException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/** The texts of one connection that only read by their words, until they are committed. */
final class Reads {
  /** How many texts are remembered. */
  private static final int MOST = 64;

  private final PostgreSqlShim shim;

  /** The functions that each calls and that may write, for all that it tells. */
  private final Map<String, Set<String>> texts = new LinkedHashMap<>();

  private boolean isTooMany;

  Reads(PostgreSqlShim shim) {
    this.shim = shim;
  }

  /** A transaction begins, or is over. */
  void clear() {
    texts.clear();
    isTooMany = false;
  }

  /** Notes a text that is about to be sent, with the functions of which it tells nothing. */
  void note(String sql, Set<String> called) {
    isTooMany |= texts.size() >= MOST && !texts.containsKey(sql);
    if (!isTooMany) {
      texts.put(sql, called);
    }
  }

  /** Returns whether they may have written, for all that is known. */
  Verdict verdict() {
    Verdict found = isTooMany ? Verdict.UNKNOWN : Verdict.READS;
    for (Map.Entry<String, Set<String>> text : texts.entrySet()) {
      Verdict one = shim.catalogue().mayWrite(text.getKey(), text.getValue());
      if (one == Verdict.MAY_WRITE) {
        return one;
      }
      found = one == Verdict.UNKNOWN ? one : found;
    }
    return found;
  }

  private Set<String> called() {
    Set<String> found = new TreeSet<>();
    texts.values().forEach(found::addAll);
    return found;
  }

  /** Returns whether they may have written; asks for what is unknown. */
  boolean mayHaveWritten(Link link) {
    Verdict found = verdict();
    Set<String> called = called();
    if (found == Verdict.READS || (called.isEmpty() && Scope.currentOrNull() == null)) {
      return false;
    }
    if (found == Verdict.UNKNOWN) {
      try {
        shim.catalogue().ask(link::ask, called);
      } catch (SQLException refused) {
        return true; // For all that is known.
      }
      found = verdict();
    }
    if (found != Verdict.READS) {
      called.removeIf(name -> shim.catalogue().calls(name) == Verdict.READS);
      shim.unknownFunctions(called);
    }
    return found != Verdict.READS;
  }
}
