/** The shim of MongoDB: positions, stored lineages, promises; over the synchronous driver. */
@NullMarked
package io.antipode.mongodb;

import org.jspecify.annotations.NullMarked;
