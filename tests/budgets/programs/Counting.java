import com.sun.management.ThreadMXBean;
import io.antipode.Antipode;
import io.antipode.request.ScopeBlock;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;

/** Counts what the library adds to one call, and prints it as a line of JSON. */
final class Counting {
  /** After so many calls all caches are filled. */
  private static final int WARM = 30;

  /** What came to the same so often is the count, of at most so many calls. */
  private static final int ALIKE = 15;

  private static final int MOST = 300;
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private Counting() {}

  /** A call of an application. */
  @FunctionalInterface
  interface Call {
    void run() throws Exception;
  }

  /** What one call came to: bytes in its thread, and threads of the process. */
  private record Count(long bytes, long threads) {}

  /** Prints what a call of the library itself comes to, in no request. */
  static void core(String line, Call call) throws Exception {
    print(line, "", steady(call, false), steady(() -> {}, false));
  }

  /** Prints what our call adds to the plain one, each in the scope of a request. */
  static void compare(String line, String driver, String release, Call ours, Call plain)
      throws Exception {
    String drivers = "\"%s\": \"%s\"".formatted(driver, release);
    Count instrumented = steady(ours, true);
    print(line, drivers, instrumented, steady(plain, true));
  }

  /** Returns the release of an artifact, as {@code group/artifact}, that Maven built. */
  static String release(String artifact) {
    String file = "/META-INF/maven/" + artifact + "/pom.properties";
    try (InputStream written = Counting.class.getResourceAsStream(file)) {
      Properties properties = new Properties();
      properties.load(Objects.requireNonNull(written, file));
      return properties.getProperty("version");
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** What one call comes to once all is warm. */
  private static Count steady(Call call, boolean inRequest) throws Exception {
    Map<Count, Integer> came = new HashMap<>();
    for (int nth = 0; nth < MOST; nth++) {
      Count count;
      if (inRequest) {
        try (ScopeBlock request = Antipode.scope()) {
          count = once(call);
        }
      } else {
        count = once(call);
      }
      if (nth >= WARM && came.merge(count, 1, Integer::sum) == ALIKE) {
        return count;
      }
    }
    throw new IllegalStateException(MOST + " calls came to " + came);
  }

  private static Count once(Call call) throws Exception {
    long threads = THREADS.getTotalStartedThreadCount();
    long bytes = THREADS.getCurrentThreadAllocatedBytes();
    call.run();
    long after = THREADS.getCurrentThreadAllocatedBytes();
    return new Count(after - bytes, THREADS.getTotalStartedThreadCount() - threads);
  }

  private static void print(String line, String drivers, Count ours, Count plain) {
    System.out.printf(
        "{\"line\": \"%s\", \"drivers\": {%s}, \"counts\": {\"bytes\": %d, \"threads\": %d}}%n",
        line, drivers, ours.bytes() - plain.bytes(), ours.threads() - plain.threads());
  }
}
