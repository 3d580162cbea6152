/** Lineages with gRPC calls: in their metadata, and back in their trailers. */
@NullMarked
package io.antipode.grpc;

import org.jspecify.annotations.NullMarked;
