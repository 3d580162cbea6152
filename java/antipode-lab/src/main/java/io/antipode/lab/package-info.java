/** Servers for the tests of the other modules, by {@code antipode lab}. */
@NullMarked
package io.antipode.lab;

import org.jspecify.annotations.NullMarked;
