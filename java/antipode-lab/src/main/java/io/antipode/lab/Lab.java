package io.antipode.lab;

import static org.junit.jupiter.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.abort;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Two regions of a store, as {@code antipode lab} starts them, until closed. Where this machine
 * cannot start them the test is skipped, unless {@code ANTIPODE_REQUIRE_STORES} names the store.
 */
public final class Lab implements AutoCloseable {
  private static final Path ROOT = Path.of("../..").toAbsolutePath().normalize();
  private static final Pattern URL = Pattern.compile("\"url\": \"([^\"]+)\"");

  private final Process process;
  private final List<String> urls;

  private Lab(Process process, List<String> urls) {
    this.process = process;
    this.urls = urls;
  }

  /** Starts two federated brokers. */
  public static Lab start() throws IOException {
    return start("rabbitmq");
  }

  /** Starts a primary and a replica of a store, or what else it has. */
  public static Lab start(String store) throws IOException {
    return start(store, 0);
  }

  /** Starts them, with a replica that is so many milliseconds late. */
  public static Lab start(String store, int lagMs) throws IOException {
    ProcessBuilder builder = module("antipode", "lab", store, "--lag-ms", "" + lagMs);
    // Where `make stores` puts what the system has no package of; installed servers come first.
    builder
        .environment()
        .merge("PATH", ROOT.resolve(".stores/bin").toString(), (path, own) -> path + ":" + own);
    Process process = builder.start();
    @Nullable String line =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))
            .readLine();
    List<String> urls =
        line == null
            ? List.of()
            : URL.matcher(line).results().map(found -> found.group(1)).toList();
    if (urls.size() != 2) {
      process.destroy();
      String why = "antipode lab starts no " + store + " here: " + line;
      if (Arrays.asList(required().split(",", -1)).contains(store)) {
        fail(why);
      }
      abort(why);
    }
    return new Lab(process, urls);
  }

  /** Returns what a module of Python's prints. */
  public static String python(String name, String... arguments) throws IOException {
    Process process = module(name, arguments).start();
    process.getOutputStream().close();
    byte[] printed = process.getInputStream().readAllBytes();
    int code = process.onExit().join().exitValue();
    return code == 0 ? new String(printed, StandardCharsets.UTF_8) : fail(name + " ended: " + code);
  }

  private static ProcessBuilder module(String name, String... arguments) {
    Path python = ROOT.resolve(".venv/bin/python");
    String program = Files.isExecutable(python) ? python.toString() : "python3";
    List<String> command = new ArrayList<>(List.of(program, "-m", name));
    command.addAll(List.of(arguments));
    return new ProcessBuilder(command)
        .directory(ROOT.toFile())
        .redirectError(ProcessBuilder.Redirect.INHERIT);
  }

  private static String required() {
    @Nullable String stores = System.getenv("ANTIPODE_REQUIRE_STORES");
    return stores == null ? "" : stores;
  }

  /** Returns the URL of the first region's server. */
  public String url() {
    return urls.get(0);
  }

  /** Returns the URL of the other region's server, or of the replica. */
  public String otherUrl() {
    return urls.get(1);
  }

  /** Returns the port in a URL. */
  public static int port(String url) {
    Matcher port = Pattern.compile(":(\\d+)/").matcher(url);
    return port.find() ? Integer.parseInt(port.group(1)) : fail("no port in " + url);
  }

  @Override
  public void close() throws IOException {
    process.getOutputStream().close(); // It stops by that.
    process.onExit().join();
  }
}
