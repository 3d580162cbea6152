/** What a program names first: {@link io.antipode.Antipode}, the settings, and their errors. */
@NullMarked
package io.antipode;

import org.jspecify.annotations.NullMarked;
