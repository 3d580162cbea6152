/** S3: versions of objects as positions, lineages in their metadata, waits. */
@NullMarked
package io.antipode.s3;

import org.jspecify.annotations.NullMarked;
