package io.antipode.jdbc;

/** How much of the text of a statement is read. */
public final class Texts {
  /** How many characters the longest text has that is read. What a longer one does is not known. */
  public static final int LONGEST = 1 << 16;

  private static final int HEAD = 1000;

  private Texts() {}

  /** Returns whether a text is too long to be read. */
  public static boolean isTooLong(String sql) {
    return sql.length() > LONGEST;
  }

  /**
   * Returns what is read of a text that is too long: it may say more than that it does anything.
   */
  public static String head(String sql) {
    return sql.substring(0, HEAD);
  }

  /** Returns as much of a text as is read at most. */
  public static String most(String sql) {
    return isTooLong(sql) ? sql.substring(0, LONGEST) : sql;
  }
}
