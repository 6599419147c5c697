import t from 'tap'
import { networkInterfaces } from 'node:os'
import { serviceUnavailable, StatusError } from '../../../src/api/kube/status.ts'
import { createMetrics } from '../../../src/metrics/metrics.ts'
import { listenOps, type OpsOptions } from '../../../src/http/server/ops.ts'
import { dial, valuesOf, type Answer, type Teardown } from '../../kit/wire/wire.ts'

const asHub = {
  metrics: createMetrics(),
  ownHosts: new Set(['ops']),
  checks: [],
  verboseLines: () => [],
}

async function asking(
  t: Teardown,
  options: Partial<OpsOptions> = {},
): Promise<(target: string, method?: string) => Promise<Answer>> {
  const listener = await listenOps({
    at: [{ host: '127.0.0.1', port: 0 }],
    ...asHub,
    ...options,
  })
  t.teardown(() => listener.close(0))
  return async (target, method = 'GET') => {
    const client = await dial(t, listener.port)
    return client
      .write(`${method} ${target} HTTP/1.1\r\nHost: ops\r\nConnection: close\r\n\r\n`)
      .answer(method)
  }
}

void t.test('idle connections keep no probe out', async (t) => {
  const listener = await listenOps({ ...asHub, at: [{ host: '127.0.0.1', port: 0 }] })
  t.teardown(() => listener.close(0))
  const silent = await Promise.all(Array.from({ length: 64 }, () => dial(t, listener.port)))
  const probe = await dial(t, listener.port)
  t.match(await probe.write('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n').answer(), {
    status: 200,
  })
  await Promise.race(silent.map(({ ended }) => ended))
})

void t.test('/v1/healthz and /v1/readyz answer OK, as yurthub does', async (t) => {
  const ask = await asking(t)
  for (const path of ['/v1/healthz', '/v1/readyz']) {
    const { status, body } = await ask(path)
    t.strictSame({ status, body }, { status: 200, body: 'OK' }, path)
  }
})

void t.test('a hub is ready when every check is well', async (t) => {
  const ask = await asking(t, {
    checks: [
      { name: 'store', check: () => undefined },
      { name: 'disk', check: () => undefined },
    ],
    verboseLines: () => ['[i]offline since then'],
  })
  t.match(await ask('/readyz'), { status: 200, body: 'ok' })
  const { body } = await ask('/readyz?verbose')
  t.equal(body, '[+]store ok\n[+]disk ok\n[i]offline since then\nreadyz check passed\n')
})

void t.test('a failed check makes it unready, and is named with what is wrong', async (t) => {
  let wrong: string | undefined = 'disk full'
  const ask = await asking(t, {
    checks: [
      { name: 'store', check: () => wrong },
      { name: 'disk', check: () => undefined },
    ],
  })
  for (const path of ['/readyz', '/v1/readyz', '/readyz?verbose']) {
    t.match(await ask(path), {
      status: 503,
      body: '[-]store failed: disk full\n[+]disk ok\nreadyz check failed\n',
    })
  }
  wrong = undefined
  t.equal((await ask('/readyz')).status, 200)
})

void t.test('metrics are there to be read', async (t) => {
  const metrics = createMetrics()
  metrics.storeFailures.add(3)
  const ask = await asking(t, { metrics })
  const answer = await ask('/metrics')
  t.equal(answer.status, 200)
  t.match(valuesOf(answer, 'content-type')[0], /^text\/plain/)
  t.match(answer.body, /^nodehub_\S+ 3$/m)
})

void t.test('HEAD is answered without a body', async (t) => {
  const ask = await asking(t)
  for (const path of ['/livez', '/readyz', '/metrics', '/nothing']) {
    const answer = await ask(path, 'HEAD')
    t.equal(answer.status, path === '/nothing' ? 404 : 200)
    t.equal(answer.body, '')
  }
})

void t.test('other paths are 404, and other methods 405', async (t) => {
  const ask = await asking(t)
  for (const path of ['/', '/livez/', '/v1/metrics', '/../livez/x']) {
    t.equal((await ask(path)).status, 404, path)
  }
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
    const answer = await ask('/livez', method)
    t.equal(answer.status, 405, method)
    t.strictSame(valuesOf(answer, 'allow'), ['GET, HEAD'])
  }
})

void t.test('no malformed target takes the hub down', async (t) => {
  const ask = await asking(t)
  for (const target of ['//', '//[', 'http://[', 'http://', '*', '/%', '/%zz', '//livez', '///']) {
    const { status } = await ask(target)
    t.ok(status === 404 || status === 400, `${target}: ${status}`)
  }
  t.equal((await ask('/livez')).status, 200)
})

void t.test('an answer has its content type and nosniff', async (t) => {
  const ask = await asking(t)
  for (const path of ['/livez', '/readyz', '/nothing']) {
    const answer = await ask(path)
    t.strictSame(valuesOf(answer, 'content-type'), ['text/plain; charset=utf-8'])
    t.strictSame(valuesOf(answer, 'x-content-type-options'), ['nosniff'])
  }
})

void t.test('on loopback no page is answered, and no name that is not this host’s', async (t) => {
  const ownHosts = new Set(['edge-1'])
  const listener = await listenOps({ ...asHub, at: [{ host: '127.0.0.1', port: 0 }], ownHosts })
  t.teardown(() => listener.close(0))
  const ask = async (...fields: string[]): Promise<number> =>
    (await dial(t, listener.port))
      .write(['GET /metrics HTTP/1.1', ...fields, 'Connection: close', '', ''].join('\r\n'))
      .answer()
      .then(({ status }) => status)
  for (const host of ['127.0.0.1:10267', 'localhost', '[::1]:10267', 'Edge-1']) {
    t.equal(await ask(`Host: ${host}`), 200, host)
    t.equal(await ask(`Host: ${host}`, 'Origin: https://page.example'), 403, host)
  }
  t.equal(await ask('Host: rebound.example'), 403)
})

const inspections = {
  reports: { boot: async () => ({ ready: true }) },
  authorize: async () => true,
}

void t.test('inspections are served on loopback', async (t) => {
  const ask = await asking(t, { inspections })
  t.match(await ask('/inspect/boot'), { status: 200, body: '{"ready":true}\n' })
  for (const path of ['/inspect', '/inspect/', '/inspect/boot/more', '/inspect/toString']) {
    t.match(await ask(path), { status: 404 }, path)
  }
})

void t.test('a caller that the hub cannot identify is answered with the reason', async (t) => {
  const authorize = async (): Promise<boolean> => {
    throw new StatusError(serviceUnavailable('the caller is not known'))
  }
  const ask = await asking(t, { inspections: { ...inspections, authorize } })
  t.match(await ask('/inspect/boot'), { status: 503, body: 'the caller is not known\n' })
})

const own = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')
const skip = own ? false : 'this host has no address but those of loopback'

void t.test('inspections are refused at other addresses', { skip }, async (t) => {
  const listener = await listenOps({ ...asHub, at: [{ host: '0.0.0.0', port: 0 }], inspections })
  t.teardown(() => listener.close(0))
  const outside = await dial(t, listener.port, own?.address)
  const head = 'GET /inspect/boot HTTP/1.1\r\nHost: ops\r\nConnection: close\r\n\r\n'
  t.match(await outside.write(head).answer(), { status: 403 })
})

void t.test('a refused request is reported with its reason', async (t) => {
  const refused: unknown[] = []
  const ask = await asking(t, {
    ownHosts: new Set(['another']),
    onRefused: ({ url }, { status, explanation }) =>
      refused.push({ url, status, why: explanation?.reason }),
  })
  t.match(await ask('/metrics'), { status: 403 })
  t.strictSame(refused, [
    { url: '/metrics', status: 403, why: 'the Host of the request is not a name of this host' },
  ])
})
