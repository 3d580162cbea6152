/**
 * The dry run: nothing waits, and what should have waited is written down. Loaded by {@code
 * mode=dry-run} alone.
 */
@NullMarked
package io.antipode.dryrun;

import org.jspecify.annotations.NullMarked;
