/** The conformance agent: does with this library what lines of JSON say. */
@NullMarked
package io.antipode.agent;

import org.jspecify.annotations.NullMarked;
