package io.antipode.postgresql;

import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A statement's text without what hides words: comments, texts, names in quotes. No text takes more
 * than linear time.
 */
final class Hidden {
  private static final String TAG = "\\$(?:" + Functions.TAG + ")?\\$";

  /**
   * What hides words; of a comment and of a text in dollars, how it begins. A text in plain quotes
   * with a backslash means one thing or another with the server's settings.
   */
  private static final Pattern HIDDEN =
      Pattern.compile(
          "--[^\\r\\n]*+"
              + "|(?<![\\w$])[eE]'[^'\\\\]*+(?:(?:\\\\.|'')[^'\\\\]*+)*+'"
              + "|'[^'\\\\]*+(?:''[^'\\\\]*+)*+'"
              + "|\"[^\"]*+(?:\"\"[^\"]*+)*+\""
              + "|(?<comment>/\\*)|(?<dollars>(?<![\\w$])"
              + TAG
              + ")|(?<unreadable>['\"]|\\*/)",
          Pattern.DOTALL);

  private static final Pattern TAGS = Pattern.compile(TAG);
  private static final Pattern COMMENTS = Pattern.compile("/\\*|\\*/");

  /** A text without these hides nothing. */
  private static final Pattern HIDES = Pattern.compile("['\"$]|--|/\\*|\\*/");

  private Hidden() {}

  /** Returns a text with something in place of what hides words; null where one cannot tell. */
  static @Nullable String replaced(String sql, UnaryOperator<String> blank) {
    if (!HIDES.matcher(sql).find()) {
      return sql;
    }
    StringBuilder plain = new StringBuilder();
    Matcher found = HIDDEN.matcher(sql);
    int at = 0;
    while (found.find(at)) {
      int end = end(sql, found);
      if (end < 0) {
        return null;
      }
      plain.append(sql, at, found.start()).append(blank.apply(sql.substring(found.start(), end)));
      at = end;
    }
    return plain.append(sql, at, sql.length()).toString();
  }

  /** Returns where what begins there ends; less than 0 where it does not. */
  private static int end(String sql, Matcher found) {
    if (found.group("comment") != null) {
      return endOfComment(sql, found.end());
    }
    if (found.group("dollars") != null) {
      return endOfDollars(sql, found.group(), found.end());
    }
    return found.group("unreadable") == null ? found.end() : -1;
  }

  /** A comment may have others within. */
  private static int endOfComment(String sql, int start) {
    Matcher mark = COMMENTS.matcher(sql).region(start, sql.length());
    for (int depth = 1; mark.find(); ) {
      depth += mark.group().equals("/*") ? 1 : -1;
      if (depth == 0) {
        return mark.end();
      }
    }
    return -1;
  }

  /** Another text in dollars may follow without a space. */
  private static int endOfDollars(String sql, String tag, int start) {
    Matcher next = TAGS.matcher(sql);
    String open = tag;
    int from = start;
    while (true) {
      int at = sql.indexOf(open, from);
      if (at < 0) {
        return -1;
      }
      int end = at + open.length();
      if (!next.region(end, sql.length()).lookingAt()) {
        return end;
      }
      open = next.group();
      from = next.end();
    }
  }
}
