/** How the SDK of OpenTelemetry, where it configures itself, finds the library. */
@NullMarked
package io.antipode.autoconfigure;

import org.jspecify.annotations.NullMarked;
