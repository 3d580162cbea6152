package io.antipode.runtime;

import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The line of the application that called the library. */
public final class CallSite {
  /** Packages that stand between the application and the library. */
  private static final List<String> BETWEEN =
      List.of(
          "io.antipode.",
          "io.grpc.",
          "io.lettuce.",
          "io.micrometer.",
          "io.netty.",
          "io.opentelemetry.",
          "jakarta.",
          "java.",
          "javax.",
          "jdk.",
          "net.ttddyy.",
          "org.apache.",
          "org.hibernate.",
          "org.junit.",
          "org.mariadb.",
          "org.springframework.",
          "reactor.",
          "redis.clients.",
          "software.amazon.awssdk.",
          "sun.",
          "com.mongodb.",
          "com.mysql.",
          "com.rabbitmq.",
          "com.zaxxer.");

  /** Of the call whose end this thread handles, where the application made it in another one. */
  private static final ThreadLocal<@Nullable StackTraceElement> MADE = new ThreadLocal<>();

  private CallSite() {}

  /**
   * Handles the end of a call that the application made at a line, perhaps in another thread.
   *
   * @param made that line; null where this thread's stack says it
   */
  public static void handle(@Nullable StackTraceElement made, Runnable end) {
    if (made == null) {
      end.run();
      return;
    }
    MADE.set(made);
    try {
      end.run();
    } finally {
      MADE.remove();
    }
  }

  /**
   * Returns the innermost line of the application on this thread's stack, for logs.
   *
   * @param packages the application's packages; null where every package that is no known library's
   *     may be one
   */
  public static String find(@Nullable Set<String> packages) {
    StackTraceElement made = MADE.get();
    if (made != null) {
      return line(made);
    }
    Predicate<String> isApplication = isOf(packages);
    return StackWalker.getInstance()
        .walk(frames -> first(frames, isApplication))
        .map(frame -> line(frame.toStackTraceElement()))
        .orElse("an unknown place in thread " + Thread.currentThread().getName());
  }

  /**
   * Returns the innermost line of the application on this thread's stack, for records; where there
   * is none, the outermost line.
   *
   * @param packages as {@link #find} takes them
   */
  public static StackTraceElement frame(@Nullable Set<String> packages) {
    StackTraceElement made = MADE.get();
    if (made != null) {
      return made;
    }
    Predicate<String> isApplication = isOf(packages);
    return StackWalker.getInstance()
        .walk(
            frames -> {
              StackWalker.StackFrame last = null;
              for (StackWalker.StackFrame frame :
                  (Iterable<StackWalker.StackFrame>) frames::iterator) {
                last = frame;
                if (isApplication.test(frame.getClassName())) {
                  break;
                }
              }
              return Objects.requireNonNull(last).toStackTraceElement();
            });
  }

  /** Classes that a framework generates have the names of the application's, and more. */
  private static Predicate<String> isOf(@Nullable Set<String> packages) {
    Predicate<String> isApplication =
        packages == null
            ? name -> BETWEEN.stream().noneMatch(name::startsWith)
            : name -> packages.stream().anyMatch(each -> isWithin(name, each));
    return isApplication.and(name -> !name.contains("$$"));
  }

  private static Optional<StackWalker.StackFrame> first(
      Stream<StackWalker.StackFrame> frames, Predicate<String> isApplication) {
    return frames.filter(frame -> isApplication.test(frame.getClassName())).findFirst();
  }

  private static boolean isWithin(String className, String name) {
    return className.startsWith(name)
        && (className.length() == name.length() || className.charAt(name.length()) == '.');
  }

  private static String line(StackTraceElement frame) {
    return frame.getClassName()
        + "."
        + frame.getMethodName()
        + "("
        + frame.getFileName()
        + ":"
        + frame.getLineNumber()
        + ")";
  }
}
