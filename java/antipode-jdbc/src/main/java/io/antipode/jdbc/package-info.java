/**
 * What shims of SQL databases share: pools whose connections are observed, reads that wait on the
 * connection that makes them, what a server is known to show. For whoever writes such a shim.
 */
@NullMarked
package io.antipode.jdbc;

import org.jspecify.annotations.NullMarked;
