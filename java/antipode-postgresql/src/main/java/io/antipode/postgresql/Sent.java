package io.antipode.postgresql;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import net.ttddyy.dsproxy.QueryInfo;
import net.ttddyy.dsproxy.proxy.ParameterSetOperation;

/**
 * What is sent at once: one statement, several, or a call.
 *
 * @param sql the texts of all its statements
 * @param effects what they may do
 * @param said which tables they name
 * @param parameters of the one statement, by their places; {@link #NULL} for NULL
 */
record Sent(String sql, Set<Effect> effects, Mentions said, Map<Integer, Object> parameters) {
  static final Object NULL = new Object();
  static final Sent NOTHING = new Sent("", Set.of(), Mentions.NOTHING, Map.of());

  /** Returns the parameters of one statement; none of several. */
  static Map<Integer, Object> parameters(List<QueryInfo> queries) {
    Map<Integer, Object> found = new HashMap<>();
    if (queries.size() == 1 && queries.get(0).getParametersList().size() == 1) {
      for (ParameterSetOperation each : queries.get(0).getParametersList().get(0)) {
        Object[] args = each.getArgs();
        if (args[0] instanceof Integer place) {
          boolean isNull =
              ParameterSetOperation.isSetNullParameterOperation(each) || args[1] == null;
          found.put(place, isNull ? NULL : args[1]);
        }
      }
    }
    return found;
  }
}
