package io.antipode.dryrun;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A line of the application's code.
 *
 * @param file the path of its package and the name of its source, the same wherever it was built
 * @param line from 1; 0 where it is not known
 * @param function the method; for a lambda the one that it is written in
 */
record Place(String file, int line, String function) {
  private static final Pattern LAMBDA = Pattern.compile("lambda\\$(.+)\\$\\d+");

  static Place of(StackTraceElement frame) {
    String name = frame.getClassName();
    int dot = name.lastIndexOf('.');
    @Nullable String source = frame.getFileName();
    String simple = name.substring(dot + 1).split("\\$", 2)[0];
    String file = source == null ? simple + ".java" : source;
    String folder = dot < 0 ? "" : name.substring(0, dot + 1).replace('.', '/');
    return new Place(folder + file, Math.max(frame.getLineNumber(), 0), function(frame));
  }

  private static String function(StackTraceElement frame) {
    Matcher lambda = LAMBDA.matcher(frame.getMethodName());
    if (!lambda.matches()) {
      return frame.getMethodName();
    }
    return switch (lambda.group(1)) {
      case "new" -> "<init>";
      case "static" -> "<clinit>";
      default -> lambda.group(1);
    };
  }

  String json() {
    return "{\"file\":"
        + Json.text(file)
        + ",\"line\":"
        + line
        + ",\"function\":"
        + Json.text(function)
        + "}";
  }
}
