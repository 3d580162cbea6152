package io.antipode.jdbc;

import java.lang.reflect.Method;
import java.sql.SQLException;
import java.util.Set;
import net.ttddyy.dsproxy.proxy.ResultSetProxyLogic;
import org.jspecify.annotations.Nullable;

/** A result of which it is noted to which rows the application comes. */
public abstract class ObservedRows implements ResultSetProxyLogic {
  private static final Set<String> MOVES =
      Set.of("next", "previous", "first", "last", "absolute", "relative", "isBeforeFirst");

  private final ResultSetProxyLogic below;

  /** Observes what the driver's calls are made by. */
  protected ObservedRows(ResultSetProxyLogic below) {
    this.below = below;
  }

  /**
   * The application came to a row, or saw that there is none.
   *
   * @param isThere whether there is one
   */
  protected abstract void moved(boolean isThere) throws SQLException;

  @Override
  public @Nullable Object invoke(Object proxy, Method method, Object @Nullable [] args)
      throws Throwable {
    @Nullable Object result = below.invoke(proxy, method, args);
    if (MOVES.contains(method.getName())) {
      boolean isThere = Boolean.TRUE.equals(result);
      if (!isThere || !method.getName().equals("isBeforeFirst")) { // Else it sees none yet.
        moved(isThere);
      }
    } else if (method.getName().equals("refreshRow")) {
      moved(true); // The row is another one by now.
    }
    return result;
  }
}
