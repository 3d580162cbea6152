/** A request while it runs: its scope, its branches, and how clients record what they did in it. */
@NullMarked
package io.antipode.request;

import org.jspecify.annotations.NullMarked;
