package io.antipode.testing;

import io.antipode.Mode;
import io.antipode.Settings;
import io.antipode.dryrun.RunningTest;
import io.antipode.request.Observer;
import io.antipode.request.Observers;
import io.antipode.runtime.Counts;
import io.antipode.runtime.KillSwitch;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionConfigurationException;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.platform.commons.support.AnnotationSupport;

/** Runs a class in a dry run of its own, and judges what it wrote down; see the annotation. */
final class DryRunExtension
    implements BeforeAllCallback, BeforeEachCallback, AfterEachCallback, AfterAllCallback {
  private static final Namespace NAMESPACE = Namespace.create(DryRunExtension.class);
  private static final Counts.Metric UNWRITTEN = new Counts.Metric("dry_run_unwritten", "");

  /** How long reads of a test are observed before its stores close. */
  private static final Duration SETTLE = Duration.ofMillis(500);

  private static final Pattern ID = Pattern.compile("[ul][0-9a-f]{8}");

  /** The dry run of one class, nested classes included. */
  private record Run(Settings before, Path folder, Set<String> known, long unwritten) {
    void enter() {
      Settings.configure(held -> held.withMode(Mode.DRY_RUN).withDryRunDir(folder));
    }
  }

  @Override
  public void beforeAll(ExtensionContext context) throws IOException {
    if (run(context) != null) {
      return; // A nested class is part of the one around it.
    }
    if (KillSwitch.isDisabled()) {
      throw new ExtensionConfigurationException(
          "Antipode is disabled in this process: a dry run would check nothing");
    }
    Set<String> known = known(context); // First: what it throws leaves no folder.
    Path folder = Files.createTempDirectory("antipode-dry-run");
    Run run = new Run(Settings.current(), folder, known, unwritten());
    context.getStore(NAMESPACE).put(Run.class, run);
    run.enter();
  }

  private static @Nullable Run run(ExtensionContext context) {
    return context.getStore(NAMESPACE).get(Run.class, Run.class);
  }

  private static Set<String> known(ExtensionContext context) throws IOException {
    String file =
        AnnotationSupport.findAnnotation(context.getRequiredTestClass(), AntipodeDryRun.class)
            .map(AntipodeDryRun::baseline)
            .orElse("");
    if (file.isEmpty()) {
      return Set.of();
    }
    try {
      Set<String> ids = new HashSet<>();
      for (String line : Files.readAllLines(Path.of(file))) {
        String id = line.strip().split("\\s", 2)[0];
        if (!id.isEmpty() && !id.startsWith("#")) {
          ids.add(checked(id, file));
        }
      }
      return ids;
    } catch (NoSuchFileException missing) {
      throw new ExtensionConfigurationException("there is no baseline " + file, missing);
    }
  }

  private static String checked(String id, String file) {
    if (!ID.matcher(id).matches()) {
      throw new ExtensionConfigurationException(
          file + " is no baseline: '" + id + "' is no id of a finding");
    }
    return id;
  }

  private static long unwritten() {
    return Counts.all().getOrDefault(UNWRITTEN, 0L);
  }

  /** Each test begins in the dry run, whatever the one before it configured. */
  @Override
  public void beforeEach(ExtensionContext context) {
    Run run = run(context);
    if (run != null) {
      run.enter();
    }
    String test = context.getTestMethod().map(method -> "::" + method.getName()).orElse("::?");
    RunningTest.set(context.getRequiredTestClass().getName() + test);
  }

  @Override
  public void afterEach(ExtensionContext context) throws InterruptedException {
    Observer observer = Observers.dryRun();
    if (observer != null) {
      observer.settle(SETTLE);
    }
    RunningTest.set(null);
  }

  @Override
  public void afterAll(ExtensionContext context) throws IOException {
    Run run = run(context);
    boolean isNested = context.getParent().map(around -> run(around) != null).orElse(false);
    if (run == null || isNested) {
      return;
    }
    Settings.configure(held -> run.before);
    List<Finding> found;
    try {
      found = Findings.in(run.folder);
    } finally {
      handOver(run);
    }
    if (unwritten() > run.unwritten) {
      throw new ExtensionConfigurationException(
          "records of the dry run could not be written, so not all reads were checked");
    }
    found = found.stream().filter(each -> !run.known.contains(each.id())).toList();
    if (!found.isEmpty()) {
      throw new UnguardedReadsError(message(context, found));
    }
  }

  private static String message(ExtensionContext context, List<Finding> found) {
    return context.getRequiredTestClass().getName()
        + ": "
        + found.size()
        + (found.size() == 1 ? " missing barrier\n" : " missing barriers\n")
        + found.stream().map(Finding::toString).collect(Collectors.joining("\n"));
  }

  /** Moves the records to where they are configured to be, or removes them. */
  private static void handOver(Run run) throws IOException {
    Path wanted = run.before.dryRunDir();
    if (wanted != null) {
      Files.createDirectories(wanted);
    }
    try (Stream<Path> files = Files.list(run.folder)) {
      files.forEach(file -> move(file, wanted));
    }
    Files.delete(run.folder);
  }

  private static void move(Path file, @Nullable Path wanted) {
    try {
      if (wanted != null) {
        Files.copy(file, wanted.resolve(file.getFileName()));
      }
      Files.delete(file);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
