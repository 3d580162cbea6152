/** The shim of MySQL and MariaDB: positions, stored lineages, promises; over JDBC. */
@NullMarked
package io.antipode.mysql;

import org.jspecify.annotations.NullMarked;
