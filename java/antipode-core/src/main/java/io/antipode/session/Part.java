package io.antipode.session;

import io.antipode.lineage.Lineage;

/**
 * What the requests of one second added.
 *
 * @param second the Unix second in which they did
 * @param lineage what they added, without what a later part says as well
 */
record Part(long second, Lineage lineage) {}
