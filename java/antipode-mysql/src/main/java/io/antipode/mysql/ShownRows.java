package io.antipode.mysql;

import io.antipode.jdbc.ObservedRows;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import net.ttddyy.dsproxy.proxy.ResultSetProxyLogic;
import org.jspecify.annotations.Nullable;

/** A result with lineages in its last columns, of which the application hears nothing. */
final class ShownRows extends ObservedRows {
  private final ResultSet rows;
  private final int columns;
  private final int hidden;
  private final Shown shown;
  private boolean isSeen;

  /** Is notified of what the application sees. */
  interface Shown {
    /** The application is about to see the first row, or that there is none. */
    void read();

    /** It sees a row with these stored lineages; null for one without. */
    void row(@Nullable String texts);

    /** It sees that there is no row. */
    void none() throws SQLException;
  }

  ShownRows(ResultSet rows, int hidden, ResultSetProxyLogic below, Shown shown)
      throws SQLException {
    super(below);
    this.rows = rows;
    this.hidden = hidden;
    this.columns = rows.getMetaData().getColumnCount() - hidden;
    this.shown = shown;
  }

  /** Returns how many columns of a result are lineages. */
  static int hidden(ResultSet rows) throws SQLException {
    ResultSetMetaData columns = rows.getMetaData();
    int count = columns.getColumnCount();
    int hidden = 0;
    while (hidden < count && columns.getColumnLabel(count - hidden).startsWith(Tables.SHOWN)) {
      hidden++;
    }
    return hidden;
  }

  @Override
  public @Nullable Object invoke(Object proxy, Method method, Object @Nullable [] args)
      throws Throwable {
    @Nullable Object result = super.invoke(proxy, method, args);
    return result instanceof ResultSetMetaData columns ? narrowed(columns) : result;
  }

  @Override
  protected void moved(boolean isThere) throws SQLException {
    if (!isSeen) {
      isSeen = true;
      shown.read();
      if (!isThere) {
        shown.none();
      }
    }
    if (isThere) {
      for (int nth = 1; nth <= hidden; nth++) {
        shown.row(text(rows.getBytes(columns + nth)));
      }
    }
  }

  /** Returns the texts of lineages that are stored with a row. */
  static @Nullable String text(byte @Nullable [] beside) {
    return beside == null ? null : new String(beside, StandardCharsets.US_ASCII);
  }

  private ResultSetMetaData narrowed(ResultSetMetaData whole) {
    return (ResultSetMetaData)
        Proxy.newProxyInstance(
            ShownRows.class.getClassLoader(),
            new Class<?>[] {ResultSetMetaData.class},
            (proxy, method, args) -> {
              if (method.getName().equals("getColumnCount")) {
                return columns;
              }
              try {
                return method.invoke(whole, args);
              } catch (InvocationTargetException error) {
                throw error.getCause();
              }
            });
  }
}
