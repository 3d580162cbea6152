package io.antipode.dryrun;

import io.antipode.runtime.Counts;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.HexFormat;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** The file of this process, of lines of JSON. Thread-safe. */
final class Records {
  /** The number of what is not written. */
  static final int UNWRITTEN = -1;

  private static final int VERSION = 1;
  private static final DateTimeFormatter MOMENT =
      DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'", Locale.ROOT).withZone(ZoneOffset.UTC);
  private static final SecureRandom RANDOM = new SecureRandom();

  private final Path directory;
  private final @Nullable String region;
  private final String process = hex(6);
  private @Nullable FileOutputStream file;
  private int next;
  private boolean isOver;

  /** Writes into a directory, which is made with the first record. */
  Records(Path directory, @Nullable String region) {
    this.directory = directory.toAbsolutePath();
    this.region = region;
  }

  static String hex(int bytes) {
    byte[] drawn = new byte[bytes];
    RANDOM.nextBytes(drawn);
    return HexFormat.of().formatHex(drawn);
  }

  /**
   * Writes one record, whole, before this returns. What cannot be written is counted, and logged
   * once.
   *
   * @param about its own fields, as members of an object of JSON
   * @return its number
   */
  synchronized int put(String kind, String about) {
    if (isOver) {
      return UNWRITTEN;
    }
    try {
      FileOutputStream open = file;
      if (open == null) {
        open = open();
        file = open;
        write(open, "process", facts());
      }
      write(open, kind, about);
      return next - 1;
    } catch (IOException error) {
      isOver = true;
      Counts.count("dry_run_unwritten");
      Counts.logOnce(
          "dry_run_unwritten",
          "",
          "",
          () -> "no more records of the dry run in " + directory + ": " + error);
      return UNWRITTEN;
    }
  }

  private FileOutputStream open() throws IOException {
    Files.createDirectories(directory);
    String name = MOMENT.format(Instant.now()) + "-" + ProcessHandle.current().pid() + "-" + hex(3);
    Path path = Files.createFile(directory.resolve(name + ".jsonl"));
    return new FileOutputStream(path.toFile(), true); // An interrupted thread does not close it.
  }

  private String facts() {
    return "\"service\":"
        + Json.text(service())
        + ",\"region\":"
        + Json.text(region)
        + ",\"pid\":"
        + ProcessHandle.current().pid()
        + ",\"language\":\"java\",\"language_version\":"
        + Json.text(System.getProperty("java.version"));
  }

  private void write(FileOutputStream open, String kind, String about) throws IOException {
    Instant now = Instant.now();
    String line =
        String.format(
            Locale.ROOT,
            "{\"v\":%d,\"kind\":\"%s\",\"t\":%d.%06d,\"process\":\"%s\",\"n\":%d,%s}\n",
            VERSION,
            kind,
            now.getEpochSecond(),
            now.getNano() / 1_000,
            process,
            next,
            about);
    open.write(line.getBytes(StandardCharsets.US_ASCII));
    next++;
  }

  /** Returns what OpenTelemetry calls this service; else the program's name. */
  private static String service() {
    String name = System.getProperty("otel.service.name", System.getenv("OTEL_SERVICE_NAME"));
    if (name != null && !name.isBlank()) {
      return name;
    }
    String program = System.getProperty("sun.java.command", "").split(" ", 2)[0];
    String last = program.substring(program.lastIndexOf('/') + 1);
    return last.isEmpty() ? "java" : last;
  }

  /** Closes the file; nothing is written any more. */
  synchronized void close() {
    isOver = true;
    FileOutputStream open = file;
    file = null;
    if (open != null) {
      try {
        open.close();
      } catch (IOException error) {
        Counts.LOG.fine(() -> "closing " + directory + " failed: " + error);
      }
    }
  }
}
