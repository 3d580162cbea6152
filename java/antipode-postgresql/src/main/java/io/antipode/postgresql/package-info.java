/** The shim of PostgreSQL: positions by timeline, reads that wait; over pgjdbc. */
@NullMarked
package io.antipode.postgresql;

import org.jspecify.annotations.NullMarked;
