/** The shim of Redis: positions, stored lineages, promises; by Lettuce. */
@NullMarked
package io.antipode.redis;

import org.jspecify.annotations.NullMarked;
