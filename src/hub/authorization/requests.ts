import type { Exchange } from '../../http/exchange/exchange.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import { forbidden, type Status } from '../../api/kube/status.ts'
import { namedBySelector, type ResourceRequest } from '../../api/request/request-info.ts'
import { accountOf, nodeIdentity, type Identity } from '../../api/request/identity.ts'
import type { Attributes, UserInfo } from './attributes.ts'

/**
 * The user that an API server sees in a caller; `undefined` for the holder of a token whose account
 * the hub does not know.
 */
export function userOf(identity: Identity, nodeName: string): UserInfo | undefined {
  if (identity === nodeIdentity) {
    return { name: `system:node:${nodeName}`, groups: ['system:nodes', authenticated] }
  }
  const account = accountOf(identity)
  if (!account) return undefined
  const { namespace, name } = account
  return {
    name: `system:serviceaccount:${namespace}:${name}`,
    groups: groupsOfAccount(namespace),
  }
}

const authenticated = 'system:authenticated'

/** The groups of a service account. */
export const groupsOfAccount = (namespace: string): readonly string[] => [
  'system:serviceaccounts',
  `system:serviceaccounts:${namespace}`,
  authenticated,
]

/**
 * The attributes by which the API server authorizes a request (apiserver
 * pkg/endpoints/request/requestinfo.go, pkg/endpoints/filters/authorization.go).
 */
export function attributesOf({ info }: Pick<Exchange, 'info'>): Attributes {
  const { verb } = info
  if (!info.isResource) return { isResource: false, verb, path: info.path }
  const { group, resource } = info.gvr
  const name = info.name ?? (isCollection(info) ? namedBySelector(info) : undefined) ?? ''
  return {
    isResource: true,
    verb,
    group,
    resource,
    subresource: info.subresource ?? '',
    // A namespace is in itself, where the path names it.
    namespace: info.namespace ?? (resource === 'namespaces' ? (info.name ?? '') : ''),
    name,
  }
}

const isCollection = ({ verb }: ResourceRequest): boolean =>
  verb === 'list' || verb === 'watch' || verb === 'deletecollection'

/**
 * The 403 of an API server (apiserver pkg/endpoints/handlers/responsewriters/errors.go); `reason`
 * is the authorizers'. `user` is absent where the hub does not know the token's account.
 */
export function refusalOf(
  user: UserInfo | undefined,
  attributes: Attributes,
  reason: string,
): Status {
  const why = reason === '' ? '' : `: ${reason}`
  const who = `${user ? `User ${quoted(user.name)}` : 'The holder of this token'} cannot ${attributes.verb}`
  if (!attributes.isResource) {
    return forbidden(`forbidden: ${plain(`${who} path ${quoted(attributes.path)}`)}${why}`)
  }
  const { group, resource, subresource, namespace, name } = attributes
  const what = quoted(subresource === '' ? resource : `${resource}/${subresource}`)
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace ${quoted(namespace)}`
  const cannot = plain(`${who} resource ${what} in API group ${quoted(group)} ${where}`)
  const object = `${qualifiedResource(attributes)}${name === '' ? '' : ` ${quoted(name)}`}`
  return forbidden(`${object} is forbidden: ${cannot}${why}`, {
    ...(name !== '' && { name }),
    ...(group !== '' && { group }),
    kind: resource,
  })
}

const quoted = (text: string): string => JSON.stringify(text)

/** As the API server writes it, lest it look like HTML. */
const plain = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
