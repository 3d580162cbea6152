/** What the library measures and counts, as metrics. */
@NullMarked
package io.antipode.telemetry;

import org.jspecify.annotations.NullMarked;
