import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { forbidden, StatusError, unauthorized, type StatusDetails } from '../api/kube/status.ts'
import type { RequestInfo } from '../api/request/request-info.ts'
import { namedBySelector } from '../api/request/request-info.ts'
import type { Tokens } from './tokens.ts'
import { anonymous, authenticated, type User } from './users.ts'

const users = new WeakMap<Socket, User>()

/** A client whose certificate the CA has not signed, or that has expired. */
const unverified: User = { name: '', groups: [] }

/** The user of a client certificate, where the client presents one. */
export function certificateUser(socket: Socket): User | undefined {
  const user = users.get(socket) ?? certificateUserOf(socket)
  if (user) users.set(socket, user)
  return user
}

function certificateUserOf(socket: Socket): User | undefined {
  const tls = socket as Partial<TLSSocket>
  if (!tls.getPeerCertificate) return undefined
  const { subject, fingerprint256 } = tls.getPeerCertificate()
  if (!subject?.CN) return undefined
  if (tls.authorized !== true) return unverified
  const credential = `X509SHA256=${(fingerprint256 ?? '').replaceAll(':', '').toLowerCase()}`
  return authenticated({
    name: String(subject.CN),
    groups: [subject.O ?? []].flat(),
    extra: { 'authentication.kubernetes.io/credential-id': [credential] },
  })
}

/** A certificate wins over a token. Throws a StatusError 401. */
export function authenticate(
  certified: User | undefined,
  authorization: string | undefined,
  tokens: Tokens,
  anonymousAllowed: boolean,
): User {
  if (certified === unverified) throw new StatusError(unauthorized())
  if (certified) return certified
  const token = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
  if (token !== undefined) {
    const user = tokens.userOf(token)
    if (user) return authenticated(user)
    throw new StatusError(unauthorized())
  }
  if (anonymousAllowed) return anonymous
  throw new StatusError(unauthorized())
}

/** The request to authorize: `resource` is absent for non-resource paths. */
export interface Attributes {
  readonly user: User
  readonly verb: string
  readonly path: string
  readonly group?: string
  readonly version?: string
  readonly resource?: string
  readonly subresource?: string
  readonly namespace?: string
  readonly name?: string
}

/** True allows; false and a text deny. The text is the reason in the answer. */
export type Authorizer = (attributes: Attributes) => boolean | string

export function attributesOf(info: RequestInfo, user: User): Attributes {
  if (!info.isResource) return { user, verb: info.verb, path: info.path }
  const { gvr, subresource, namespace } = info
  const name = info.name ?? namedBySelector(info)
  return {
    user,
    verb: info.verb,
    path: info.path,
    ...gvr,
    ...(subresource !== undefined && { subresource }),
    ...(namespace !== undefined && { namespace }),
    ...(name !== undefined && { name }),
  }
}

/** Throws a StatusError 403, worded as apiserver pkg/endpoints/handlers/responsewriters does. */
export function authorize(attributes: Attributes, authorizer: Authorizer): void {
  const verdict = authorizer(attributes)
  if (verdict === true) return
  const reason = typeof verdict === 'string' && verdict !== '' ? `: ${verdict}` : ''
  throw new StatusError(forbidden(`${refusal(attributes)}${reason}`, detailsOf(attributes)))
}

function refusal(attributes: Attributes): string {
  const { user, verb, path, resource, subresource, group, namespace, name } = attributes
  const who = `User ${JSON.stringify(user.name)} cannot ${verb}`
  if (resource === undefined) return `forbidden: ${who} path ${JSON.stringify(path)}`
  const qualified = group ? `${resource}.${group}` : resource
  const what = name === undefined ? qualified : `${qualified} ${JSON.stringify(name)}`
  const whole = subresource === undefined ? resource : `${resource}/${subresource}`
  const where =
    namespace === undefined
      ? 'at the cluster scope'
      : `in the namespace ${JSON.stringify(namespace)}`
  return `${what} is forbidden: ${who} resource ${JSON.stringify(whole)} in API group ${JSON.stringify(group ?? '')} ${where}`
}

function detailsOf({ resource, group, name }: Attributes): StatusDetails {
  if (resource === undefined) return {}
  return { ...(name !== undefined && { name }), ...(group && { group }), kind: resource }
}
