/** What the library counts, as metrics of OpenTelemetry. */
@NullMarked
package io.antipode.telemetry;

import org.jspecify.annotations.NullMarked;
