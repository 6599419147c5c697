import { Readable } from 'node:stream'
import { ownVersion } from '../../base/own-version.ts'
import type { Claim, Credential, Exchange } from '../../exchange/exchange.ts'
import { HeaderList } from '../../exchange/headers.ts'
import { mediaType } from '../../kube/media-type.ts'
import { componentOf } from '../../request/component.ts'
import type { Form } from '../../request/form.ts'
import type { Identity } from '../../request/identity.ts'
import { parseRequestInfo } from '../../request/request-info.ts'

/** In whose name the hub asks. */
export interface OnBehalf {
  readonly identity: Identity
  readonly credential: Credential
  /** What proves the caller to an API server; absent where the hub's own credentials do. */
  readonly authorization?: string
  /** Told what is answered to it. */
  readonly claim?: Claim
}

export interface OwnRequest extends OnBehalf {
  readonly url: string
  /** In which the answer is wanted, and its body written where there is one. */
  readonly form: Form
  /** Sent with POST. */
  readonly body?: Uint8Array
  /** Whether the answer may come compressed: API servers compress long lists. */
  readonly gzip?: boolean
  readonly signal: AbortSignal
}

const userAgent = `nodehub/v${ownVersion()}`

/** No client is at its other end. */
const nobodysEnd = { address: '', port: 0, localAddress: '', localPort: 0 }

let made = 0

/** A request that the hub itself makes, as component `nodehub`. */
export function ownRequest({ url, form, body, gzip, signal, ...who }: OwnRequest): Exchange {
  const { identity, credential, authorization, claim } = who
  const method = body ? 'POST' : 'GET'
  const type = mediaType(form.encoding)
  made += 1
  return {
    id: `own-${made}`,
    method,
    url,
    headers: new HeaderList([
      'User-Agent',
      userAgent,
      'Accept',
      type,
      ...(gzip ? ['Accept-Encoding', 'gzip'] : []),
      ...(authorization === undefined ? [] : ['Authorization', authorization]),
      ...(body ? ['Content-Type', type, 'Content-Length', String(body.byteLength)] : []),
    ]),
    peer: nobodysEnd,
    ...(body && { body: Readable.from([body], { objectMode: false }) }),
    upgrade: false,
    signal,
    info: parseRequestInfo(method, url),
    component: componentOf(userAgent),
    identity,
    credential,
    ...(claim && { claim }),
    forms: [form],
  }
}
