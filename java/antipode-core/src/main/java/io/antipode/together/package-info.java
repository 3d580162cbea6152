/** Work that runs once for several requests, and the values that caches keep of it. */
@NullMarked
package io.antipode.together;

import org.jspecify.annotations.NullMarked;
