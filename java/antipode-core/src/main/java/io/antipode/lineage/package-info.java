/** What a request depends on: values that never change, their text, and what a bound leaves out. */
@NullMarked
package io.antipode.lineage;

import org.jspecify.annotations.NullMarked;
