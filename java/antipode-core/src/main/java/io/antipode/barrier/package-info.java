/**
 * Barriers: they wait until a lineage is visible where the caller is about to read. And what a shim
 * is to them: {@link io.antipode.barrier.Shim}, {@link io.antipode.barrier.Endpoint} and {@link
 * io.antipode.barrier.Observation}.
 */
@NullMarked
package io.antipode.barrier;

import org.jspecify.annotations.NullMarked;
