package io.antipode.testing;

import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.parallel.ResourceLock;

/**
 * Runs a class of tests in a dry run, and fails it when one of its requests read from a replica
 * without waiting for what it depends on there, however fast the replica was.
 *
 * <pre>{@code
 * @AntipodeDryRun
 * class FeedTest {
 *   ...
 * }
 * }</pre>
 *
 * <p>Clients that read from replicas in production say so ({@code ReadsFrom.REPLICA}), also where
 * the test has one server only. Barriers wait for nothing meanwhile. Settings are the process's:
 * such classes run one after the other. Where {@code dry_run_dir} is configured, the records are
 * put there for {@code antipode report}.
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Inherited
@ExtendWith(DryRunExtension.class)
@ResourceLock("io.antipode.Settings")
public @interface AntipodeDryRun {
  /**
   * Returns the file of the findings that are known and fail nothing, one id a line, as {@code
   * antipode report --write-baseline} writes it; empty for none. It must be there.
   */
  String baseline() default "";
}
