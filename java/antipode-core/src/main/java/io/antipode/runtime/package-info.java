/**
 * What every part of the library needs of the process: counts, the log, the clock, the kill switch,
 * names of hosts. For the library's own modules; no part of its interface.
 */
@NullMarked
package io.antipode.runtime;

import org.jspecify.annotations.NullMarked;
