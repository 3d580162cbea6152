/**
 * From one request of a user to the next: a browser carries no baggage, but it keeps cookies. For
 * integrations of servers.
 */
@NullMarked
package io.antipode.session;

import org.jspecify.annotations.NullMarked;
