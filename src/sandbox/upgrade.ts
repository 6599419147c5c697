import { hash, randomUUID } from 'node:crypto'
import { STATUS_CODES, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { JsonObject } from '../api/kube/json.ts'
import {
  badRequest,
  methodNotAllowed,
  notFound,
  StatusError,
  type Status,
} from '../api/kube/status.ts'
import { admit, statusOf } from './api.ts'
import type { Api } from './call.ts'
import { goJson } from '../api/codec/json/write.ts'
import type { SeenRequest } from './requests.ts'
import type { User } from './users.ts'

/** A request to change the protocol of its connection. */
interface Upgrade {
  readonly request: IncomingMessage
  readonly seen: SeenRequest
  readonly socket: Duplex
  /** The bytes after the request. */
  readonly head: Buffer
}

const upgraded = new Set(['exec', 'attach', 'portforward'])

/**
 * Answers a request to change the protocol of its connection: exec, attach and port-forward of
 * pods.
 */
export function answerUpgrade(api: Api, upgrade: Upgrade, certified: User | undefined): void {
  try {
    const { info } = admit(api, upgrade.seen, certified)
    if (!info.isResource || info.gvr.resource !== 'pods' || !upgraded.has(info.subresource ?? '')) {
      throw new StatusError(methodNotAllowed())
    }
    const pods = api.registry.catalog.find(info.gvr)
    if (!pods || !api.registry.find(pods, info.namespace, info.name ?? '')) {
      throw new StatusError(notFound({ group: '', resource: 'pods', name: info.name ?? '' }))
    }
    switchProtocol(upgrade)
  } catch (cause) {
    refuse(upgrade, statusOf(cause))
  }
}

function switchProtocol(upgrade: Upgrade): void {
  const protocol = String(upgrade.request.headers['upgrade'] ?? '').toLowerCase()
  if (protocol === 'websocket') openWebSocket(upgrade)
  else if (protocol.startsWith('spdy/')) openSpdy(upgrade)
  else throw new StatusError(badRequest(`unable to upgrade: unknown protocol ${protocol}`))
}

/** The protocol that a header offers first. */
const firstIn = ({ request }: Upgrade, header: string): string | undefined =>
  String(request.headers[header] ?? '')
    .split(',')[0]
    ?.trim() || undefined

/** RFC 6455 section 4.2.2. */
function openWebSocket(upgrade: Upgrade): void {
  const key = upgrade.request.headers['sec-websocket-key']
  const protocol = firstIn(upgrade, 'sec-websocket-protocol')
  if (typeof key !== 'string' || protocol === undefined)
    throw new StatusError(badRequest('unable to upgrade: websocket handshake is malformed'))
  accept(upgrade, [
    ['Upgrade', 'websocket'],
    ['Connection', 'Upgrade'],
    ['Sec-WebSocket-Accept', hash('sha1', `${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`, 'base64')],
    ['Sec-WebSocket-Protocol', protocol],
  ])
}

function openSpdy(upgrade: Upgrade): void {
  const protocol = firstIn(upgrade, 'x-stream-protocol-version')
  accept(upgrade, [
    ['Connection', 'Upgrade'],
    ['Upgrade', 'SPDY/3.1'],
    ...(protocol === undefined ? [] : [['X-Stream-Protocol-Version', protocol] as const]),
  ])
}

/**
 * Accepts the upgrade and echoes all bytes: enough for a proxy, which does not parse them either.
 */
function accept(
  { socket, head }: Pick<Upgrade, 'socket' | 'head'>,
  headers: readonly (readonly [string, string])[],
): void {
  socket.write(headText(101, 'Switching Protocols', headers))
  if (head.byteLength > 0) socket.write(head)
  socket.pipe(socket)
}

function refuse({ seen, socket }: Upgrade, status: Status): void {
  const body = `${goJson(status as unknown as JsonObject)}\n`
  socket.end(
    headText(status.code, STATUS_CODES[status.code] ?? '', [
      ['Audit-Id', String(seen.headers['audit-id'] ?? randomUUID())],
      ['Content-Type', 'application/json'],
      ['Content-Length', String(Buffer.byteLength(body))],
      ['Connection', 'close'],
    ]) + body,
  )
}

const headText = (
  status: number,
  phrase: string,
  headers: readonly (readonly [string, string])[],
): string =>
  [
    `HTTP/1.1 ${status} ${phrase}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
    '',
    '',
  ].join('\r\n')
