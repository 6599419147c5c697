/**
 * Size of the WAL at which it is checkpointed and restarted. A later checkpoint copies a page that
 * was written several times only once.
 */
export const checkpointBytes = 16 << 20
