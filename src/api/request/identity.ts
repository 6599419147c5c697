declare const brand: unique symbol

/**
 * The identity of a caller, part of every key of the store. `node`: the hub's own certificate
 * authenticates it. `account:...`: a service account, with any of its tokens. `token:<keyed hash>`:
 * the holder of one bearer token whose account, if it names one, is unconfirmed. `hub`: the hub
 * itself.
 */
export type Identity = string & { readonly [brand]: 'Identity' }

export const nodeIdentity = 'node' as Identity

/** The hub, for what it reads for itself. Its requests are sent with the node's credentials. */
export const hubIdentity = 'hub' as Identity

/** No caller's: in a key of the store the whole of what is kept once for all callers. */
export const everyone = '' as Identity

/** A caller without a proven identity. Records for it are never read. */
export const unprovenIdentity = 'unproven' as Identity

const accountPrefix = 'account:'

/** With its uid: an account that is deleted and created again under its name is another one. */
export const serviceAccount = (account: {
  readonly namespace: string
  readonly name: string
  readonly uid: string
}): Identity =>
  `${accountPrefix}${[account.namespace, account.name, account.uid].map(encodeURIComponent).join('/')}` as Identity

/** How the identities of all accounts of a name begin, whichever their uids. */
export const accountsNamed = (account: {
  readonly namespace: string
  readonly name: string
}): string => serviceAccount({ ...account, uid: '' })

/** The service account that an identity is; `undefined` for another identity. */
export function accountOf(
  identity: Identity,
): { readonly namespace: string; readonly name: string } | undefined {
  if (!identity.startsWith(accountPrefix)) return undefined
  const parts = identity.slice(accountPrefix.length).split('/')
  const [namespace = '', name = ''] = parts.map(decodeURIComponent)
  return { namespace, name }
}

/**
 * `hash` is a keyed hash, never the token: identities are written to disk and shown by inspections.
 */
export const tokenHolder = (hash: string): Identity => `token:${hash}` as Identity
