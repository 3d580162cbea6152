/** Random programs over real servers: what applications do with JDBC. */
@NullMarked
package io.antipode.programs;

import org.jspecify.annotations.NullMarked;
