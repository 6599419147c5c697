import { after } from '../base/clock.ts'
import { createServer } from '../base/node-http.ts'
import type { HubMetrics } from '../metrics/metrics.ts'
import { isLoopback, strangeTo } from '../request/own-host.ts'
import { ConnectionLimit } from './connection-limit.ts'
import type { Listener } from './listener.ts'
import { listening, type Place } from './listening.ts'

/** One thing that readiness depends on. `check` returns what is wrong, `undefined` where nothing is. */
export interface ReadinessCheck {
  readonly name: string
  readonly check: () => string | undefined
}

export type OpsOptions = Place & {
  readonly metrics: Pick<HubMetrics, 'exposition' | 'connectionsCut'>
  /** Names and addresses of this host by which callers may call it, besides those of loopback. */
  readonly ownHosts: ReadonlySet<string>
  readonly checks: readonly ReadinessCheck[]
  /** Further lines for `?verbose`, which do not affect readiness: whether the hub is offline, and since when. */
  readonly remarks: () => readonly string[]
  /** What is told at `/inspect/<name>`, as JSON, to callers on this host. Secrets are no part of it. */
  readonly inspections?: Readonly<Record<string, () => object>>
  /** Called with the cause when a connection could not be accepted. */
  readonly onBroken?: (cause: unknown) => void
}

/** One more closes another (see `ConnectionLimit`): a kubelet whose probe got no connection would restart the hub. */
const mostConnections = 64

const plain = { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' }

/** yurthub's answer, to the letter: `yurtadm` compares the whole body with it (pkg/yurtadm/util/yurthub/yurthub.go). */
const yurthubOk = 'OK'

/** Serves livez, readyz, healthz, yurthub's paths for them, metrics, and inspections; of API objects nothing but their names. */
export async function listenOps(options: OpsOptions): Promise<Listener> {
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 30_000 })
  const connections = new ConnectionLimit(server, mostConnections, (reason) =>
    options.metrics.connectionsCut.add({ reason }),
  )
  server.on('request', (request, response) => {
    const serving = connections.serving(request.socket)
    response.once('close', () => serving[Symbol.dispose]())
    const [path, query] = (request.url ?? '/').split('?')
    const { host, origin } = request.headers
    const localAddress = request.socket.localAddress ?? ''
    const strange = strangeTo(options.ownHosts, { localAddress, host, origin })
    if (strange !== undefined) {
      response.writeHead(403, plain).end(`${strange}\n`)
      return
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.writeHead(405, { ...plain, Allow: 'GET, HEAD' }).end()
      return
    }
    switch (path) {
      case '/livez':
      case '/healthz':
        response.writeHead(200, plain).end('ok')
        return
      case '/v1/healthz':
        response.writeHead(200, plain).end(yurthubOk)
        return
      case '/readyz':
      case '/v1/readyz': {
        const { ready, text } = readiness(options)
        const ok = path === '/readyz' ? 'ok' : yurthubOk
        const body = new URLSearchParams(query).has('verbose') || !ready ? text : ok
        response.writeHead(ready ? 200 : 503, plain).end(body)
        return
      }
      case '/metrics':
        options.metrics.exposition().then(
          ({ contentType, body }) =>
            response.writeHead(200, { 'Content-Type': contentType }).end(body),
          () => response.writeHead(500, plain).end(),
        )
        return
      default: {
        const inspect = inspectionAt(options, path ?? '')
        if (inspect && isLoopback(localAddress)) {
          const headers = { ...plain, 'Content-Type': 'application/json' }
          response.writeHead(200, headers).end(`${JSON.stringify(inspect())}\n`)
          return
        }
        if (inspect) {
          response.writeHead(403, plain).end('this is told on this host only, on loopback\n')
          return
        }
        response.writeHead(404, plain).end('404 page not found\n')
      }
    }
  })
  const bound = await listening(server, options, options.onBroken ?? (() => undefined))
  return {
    ...bound,
    close: async (graceMs) => {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeIdleConnections()
      using _cut = after(graceMs, () => server.closeAllConnections())
      await closed
    },
  }
}

function inspectionAt({ inspections = {} }: OpsOptions, path: string): (() => object) | undefined {
  const [, root, name = ''] = path.split('/')
  const known =
    path === `/${root}/${name}` && root === 'inspect' && Object.hasOwn(inspections, name)
  return known ? inspections[name] : undefined
}

/** In the words of the API server's own `?verbose`. */
function readiness({ checks, remarks }: OpsOptions): { ready: boolean; text: string } {
  const results = checks.map(({ name, check }) => ({ name, wrong: check() }))
  const ready = results.every(({ wrong }) => wrong === undefined)
  const lines = results.map(({ name, wrong }) =>
    wrong === undefined ? `[+]${name} ok` : `[-]${name} failed: ${wrong}`,
  )
  const verdict = ready ? 'readyz check passed' : 'readyz check failed'
  return { ready, text: `${[...lines, ...remarks(), verdict].join('\n')}\n` }
}
