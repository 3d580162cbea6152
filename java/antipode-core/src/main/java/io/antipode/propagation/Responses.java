package io.antipode.propagation;

import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import io.antipode.request.Observers;
import io.antipode.request.Scope;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Lineages in responses, for servers and clients that no integration knows. */
public final class Responses {
  private Responses() {}

  /**
   * Returns what the response of the current request says in {@code antipode-lineage}; null without
   * a scope. Call it last: writes after it are counted as written after the response.
   */
  public static @Nullable String inject() {
    Scope scope = Scope.currentOrNull();
    return scope == null ? null : scope.answer();
  }

  /**
   * Merges the lineage of a response into the current scope, while that is open.
   *
   * @param headers of the response; names in any case
   * @param service who answered: the subject of the mark where its lineage is unreadable
   * @return the lineage of the response; the empty one where it has none
   */
  public static Lineage extract(Map<String, List<String>> headers, String service) {
    String text = Headers.joined(headers, Headers.LINEAGE);
    if (text == null) {
      return Lineage.empty();
    }
    Lineage lineage = LineageText.readable(service, text);
    Scope scope = Scope.currentOrNull();
    if (scope != null && scope.isOpen()) {
      scope.merge(lineage);
    }
    return Observers.dryRun() == null ? lineage : lineage.withoutNotes();
  }
}
