declare const brand: unique symbol

/**
 * Who a caller is; part of every key of the store. `node`: the hub's own certificate answers for
 * it; `account:...`: a service account, whatever token it has at the moment; `token:<keyed hash>`:
 * the holder of one bearer token, of which only the hash is kept and whose account, if it names
 * one, nothing has confirmed; `shared`: nobody but the hub.
 */
export type Identity = string & { readonly [brand]: 'Identity' }

export const nodeIdentity = 'node' as Identity

/**
 * The hub itself, where it reads collections that it shares among those who may read them whole.
 * Its requests go up as the node's.
 */
export const sharedIdentity = 'shared' as Identity

/** A caller who has proved no identity: what is recorded for it is read by no one. */
export const unprovenIdentity = 'nobody' as Identity

/**
 * A client of `nodehub cluster` with a certificate of `--client-ca`. It is no part of a key of the
 * store: its reviews are not recorded.
 */
export const certificateHolder = (commonName: string): Identity =>
  `certificate:${commonName}` as Identity

/** With its uid: an account that was deleted and made again under its name is another. */
export const serviceAccount = (account: {
  readonly namespace: string
  readonly name: string
  readonly uid: string
}): Identity =>
  `account:${[account.namespace, account.name, account.uid].map(encodeURIComponent).join('/')}` as Identity

/**
 * `hash` is a keyed hash, never the token: an identity is written to disk and shown in inspection.
 */
export const tokenHolder = (hash: string): Identity => `token:${hash}` as Identity
