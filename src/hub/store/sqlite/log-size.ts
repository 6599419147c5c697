/**
 * Bytes of the log at which it is copied into the database and begun anew. The longer it waits, the
 * more often a page has been written again meanwhile, which then is copied only once.
 */
export const checkpointBytes = 16 << 20
