/** An extension of OpenTelemetry's Java agent, which loads it; applications never call it. */
@NullMarked
package io.antipode.javaagent;

import org.jspecify.annotations.NullMarked;
