package io.antipode.spring;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Runs a method of a bean once the lineage of its request is visible, before a transaction that the
 * same method opens: {@code @Barrier(timeout = "2s", only = "posts")}.
 *
 * <p>A method that returns a {@code Mono}, a {@code Flux}, a {@code CompletableFuture} or a {@code
 * CompletionStage} returns at once, and no thread waits; others block. What is unmet is thrown, or
 * fails what is returned, as {@link io.antipode.barrier.Barriers#barrier} says it. A call from
 * within the bean does not go through its proxy, and so waits for nothing.
 */
@Documented
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
public @interface Barrier {
  /** How long to wait, as {@code 2s}, {@code 500ms} or {@code PT2S}; a bare number is seconds. */
  String timeout();

  /** The datastores to wait for; all where none is named. */
  String[] only() default {};

  /** Datastores not to wait for. */
  String[] exclude() default {};

  /** Whether each read waits automatically, on its own connection, in place of the method. */
  boolean atRead() default false;
}
