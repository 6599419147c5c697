declare const brand: unique symbol

/**
 * Whom a caller has proved to be; part of every key of the store. `node`: the hub's own certificate answers for it;
 * `token:<keyed hash>`: a bearer token, of which only the hash is kept.
 */
export type Identity = string & { readonly [brand]: 'Identity' }

export const node = 'node' as Identity

/** `hash` is a keyed hash, never the token: an identity is written to disk and shown in inspection. */
export const tokenHolder = (hash: string): Identity => `token:${hash}` as Identity
