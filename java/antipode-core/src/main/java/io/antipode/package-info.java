/** The lineage of a request: which writes it made or saw, and what is known to be missing. */
@NullMarked
package io.antipode;

import org.jspecify.annotations.NullMarked;
