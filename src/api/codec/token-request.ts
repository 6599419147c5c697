import type { GVK } from '../kube/gvk.ts'
import type { EncodedObject } from './object.ts'
import { cursorOf } from './cursor.ts'

/** The spec of a TokenRequest. */
export interface TokenSpec {
  /** Empty: the API server itself. */
  readonly audiences: readonly string[]
  /** Absent: an hour, the API's default. */
  readonly expirationSeconds: number | undefined
  /** The object whose deletion invalidates the token, usually a pod. */
  readonly boundObject:
    { readonly kind: string; readonly name: string; readonly uid: string } | undefined
}

const isTokenRequest = ({ group, kind }: GVK): boolean =>
  group === 'authentication.k8s.io' && kind === 'TokenRequest'

/**
 * The spec of a TokenRequest; `undefined` for an object of another kind. Throws `MalformedBody`.
 */
export function tokenSpec({ encoding, gvk, object }: EncodedObject): TokenSpec | undefined {
  if (!isTokenRequest(gvk)) return undefined
  const cursor = cursorOf(encoding, gvk, object)
  const text = (...path: (string | number)[]): string => {
    const value = cursor.value(['spec', ...path])
    return typeof value === 'string' ? value : ''
  }
  const seconds = cursor.value(['spec', 'expirationSeconds'])
  const kind = text('boundObjectRef', 'kind')
  return {
    audiences: Array.from({ length: cursor.count(['spec', 'audiences']) }, (_, at) =>
      text('audiences', at),
    ),
    expirationSeconds: typeof seconds === 'number' ? seconds : undefined,
    boundObject:
      kind === ''
        ? undefined
        : { kind, name: text('boundObjectRef', 'name'), uid: text('boundObjectRef', 'uid') },
  }
}

/** The token in the answer to a TokenRequest; '' if there is none. Throws `MalformedBody`. */
export function tokenIn({ encoding, gvk, object }: EncodedObject): string {
  if (!isTokenRequest(gvk)) return ''
  const token = cursorOf(encoding, gvk, object).value(['status', 'token'])
  return typeof token === 'string' ? token : ''
}
