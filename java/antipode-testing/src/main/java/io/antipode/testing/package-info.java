/** For the tests of applications. */
@NullMarked
package io.antipode.testing;

import org.jspecify.annotations.NullMarked;
