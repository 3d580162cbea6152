/**
 * Lineages between services: in the baggage of requests, and in a header of responses. For
 * integrations, gateways, and programs that set up OpenTelemetry themselves.
 */
@NullMarked
package io.antipode.propagation;

import org.jspecify.annotations.NullMarked;
