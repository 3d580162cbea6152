package io.antipode.propagation;

import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import io.antipode.runtime.Counts;
import java.util.List;

/** What the headers of a request say. */
final class Incoming {
  private static final Lineage STRIPPED =
      Lineage.empty().marked(new Incomplete(Headers.BAGGAGE, "stripped"));

  private Incoming() {}

  /**
   * Returns the lineage that came: absent, valid, or marked as unreadable or stripped.
   *
   * @param baggage the values of all baggage headers
   * @param sent whether the request says that it was sent with a lineage
   */
  static Lineage lineage(Iterable<String> baggage, boolean sent) {
    List<String> texts = Headers.members(baggage);
    return texts.isEmpty() && sent ? stripped() : lineage(texts);
  }

  /** Returns the lineage of the texts of members, of which anyone may be the author. */
  static Lineage lineage(List<String> texts) {
    Lineage[] found =
        texts.stream()
            .distinct()
            .map(text -> LineageText.readable(Headers.BAGGAGE, text))
            .toArray(Lineage[]::new);
    return Lineage.empty().merge(found);
  }

  private static Lineage stripped() {
    Counts.count("stripped", Headers.BAGGAGE);
    Counts.logOnce(
        "stripped",
        Headers.BAGGAGE,
        "",
        () -> "a request was sent with a lineage and came without: something removes its baggage");
    return STRIPPED;
  }
}
