import { request, type RequestOptions } from 'node:https'
import { connect, type TLSSocket } from 'node:tls'
import { once } from 'node:events'
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { CertificateAuthority, type IssuedCertificate } from '../../src/certificates/authority.ts'
import { longestMs, serveWebhooks, type WebhookOptions } from '../../src/cluster/serve.ts'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import { lookupOf, poolNamed } from './admission/pool-lookup.ts'
import { intermediateAuthority } from '../kit/certificates.ts'
import { until } from '../kit/until.ts'

const authority = await CertificateAuthority.create('webhooks')

const issued = (): Promise<IssuedCertificate> =>
  authority.issue({ commonName: 'webhooks', usage: 'server', ipAddresses: ['127.0.0.1'] })

interface Answer {
  readonly status: number
  readonly type: string
  readonly text: string
}

type Ask = (
  method: string,
  path: string,
  body?: string | Buffer,
  more?: RequestOptions,
) => Promise<Answer>

async function serving(
  t: Test,
  more: Partial<WebhookOptions> = {},
): Promise<{ ask: Ask; port: number }> {
  const pair = await issued()
  const listener = await serveWebhooks({
    address: '127.0.0.1',
    port: 0,
    certificate: () => pair,
    lookup: lookupOf(poolNamed('host', { hostNetwork: true })),
    propagate: false,
    ...more,
  })
  t.teardown(() => listener.close(0))
  const { port } = listener
  const ask: Ask = async (method, path, body, more = {}) => {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const sent = request(
      { host: '127.0.0.1', port, path, method, ca: authority.certificate, agent: false, ...more },
      (response) => {
        const parts: Buffer[] = []
        response.on('data', (part: Buffer) => parts.push(part))
        response.on('error', reject)
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            type: response.headers['content-type'] ?? '',
            text: Buffer.concat(parts).toString(),
          }),
        )
      },
    )
    sent.on('error', reject)
    sent.end(body)
    return promise
  }
  return { ask, port }
}

const admission = (object: JsonObject): string =>
  JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: { uid: 'u-1', kind: { kind: 'Node' }, operation: 'CREATE', object },
  })

const node = { metadata: { name: 'a', labels: { 'apps.openyurt.io/nodepool': 'host' } } }

const conversion = (desiredAPIVersion: string, ...objects: Json[]): string =>
  JSON.stringify({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'ConversionReview',
    request: { uid: 'c-1', desiredAPIVersion, objects },
  })

void t.test('pools are converted, all of them or none', async (t) => {
  const { ask } = await serving(t)
  const pool = {
    apiVersion: 'apps.openyurt.io/v1beta1',
    kind: 'NodePool',
    metadata: { name: 'a' },
    spec: { hostNetwork: true },
  }
  const converted = await ask(
    'POST',
    '/convert',
    conversion('apps.openyurt.io/v1beta2', pool, pool),
  )
  const as = { ...pool, apiVersion: 'apps.openyurt.io/v1beta2' }
  t.strictSame(JSON.parse(converted.text), {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'ConversionReview',
    response: { uid: 'c-1', convertedObjects: [as, as], result: { status: 'Success' } },
  })
  const wrong: [string, RegExp][] = [
    [conversion('apps.openyurt.io/v1', pool), /no version of NodePool/],
    [
      conversion('apps.openyurt.io/v1beta2', pool, { kind: 'Pod' }),
      /Pod is no version of NodePool/,
    ],
    [conversion('apps.openyurt.io/v1beta2', 1), /no list of objects/],
  ]
  for (const [body, message] of wrong) {
    const { status, text } = await ask('POST', '/convert', body)
    t.equal(status, 200)
    t.match(JSON.parse(text), {
      response: { uid: 'c-1', convertedObjects: [], result: { status: 'Failure', message } },
    })
  }
  t.match(await ask('POST', '/convert', admission(node)), {
    status: 400,
    text: /no ConversionReview/,
  })
})

void t.test('a malformed review gets a Status, and the next is answered', async (t) => {
  const { ask } = await serving(t)
  const cases: [string, string, string | Buffer | undefined, number][] = [
    ['POST', '/mutate/nodes', '', 400],
    ['POST', '/mutate/nodes', '{', 400],
    ['POST', '/mutate/nodes', Buffer.from([0xff, 0xfe, 0]), 400],
    ['POST', '/mutate/nodes', '[]', 400],
    ['POST', '/mutate/nodes', '['.repeat(200_000), 400],
    ['POST', '/mutate/nodes', `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`, 400],
    ['POST', '/mutate/nodes', 'x'.repeat(8 * 1024 * 1024 + 1), 413],
    ['GET', '/mutate/nodes', undefined, 405],
    ['POST', '/readyz', '{}', 405],
    ['POST', '/mutate', '{}', 404],
    ['GET', '/', undefined, 404],
  ]
  for (const [method, path, body, code] of cases) {
    const answer = await ask(method, path, body)
    t.equal(answer.status, code, `${method} ${path}`)
    t.match(JSON.parse(answer.text), { kind: 'Status', status: 'Failure', code })
  }
  t.equal((await ask('POST', '/mutate/nodes', admission(node))).status, 200)
})

void t.test('a review that takes too long gets a timeout', async (t) => {
  const looking = Promise.withResolvers<void>()
  const { ask } = await serving(t, {
    lookup: {
      ...lookupOf(),
      pool: () => {
        looking.resolve()
        return new Promise(() => undefined)
      },
    },
  })
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const asked = ask('POST', '/mutate/nodes', admission(node))
  await looking.promise
  mock.timers.tick(longestMs)
  const { status, text } = await asked
  t.equal(status, 504)
  t.match(JSON.parse(text), { kind: 'Status', reason: 'Timeout' })
})

void t.test('an internal failure is a 500, left to the failurePolicy', async (t) => {
  const failed: unknown[] = []
  const { ask } = await serving(t, {
    lookup: { ...lookupOf(), pool: () => Promise.reject(new Error('the list is gone')) },
    onFailed: (cause) => failed.push(cause),
  })
  const answer = await ask('POST', '/mutate/nodes', admission(node))
  t.match(answer, { status: 500, text: /the list is gone/ })
  t.match(failed, [{ message: 'the list is gone' }])
})

void t.test('/readyz says whether the replica is ready', async (t) => {
  const told: { unready?: string } = {}
  const { ask } = await serving(t, { unready: () => told.unready })
  t.match(await ask('GET', '/readyz'), { status: 200, text: 'ok' })
  told.unready = 'pools have not been read yet'
  t.match(await ask('GET', '/readyz'), { status: 503, text: 'pools have not been read yet' })
  t.match(await ask('GET', '/healthz'), { status: 200, text: 'ok' })
  t.match(await ask('GET', '/livez'), { status: 200, text: 'ok' })
})

void t.test('new connections get the renewed certificate', async (t) => {
  let pair = await issued()
  const { port } = await serving(t, { certificate: () => pair })
  const shown = async (): Promise<string> => {
    const socket: TLSSocket = connect({ host: '127.0.0.1', port, ca: authority.certificate })
    await once(socket, 'secureConnect')
    const { serialNumber } = socket.getPeerCertificate()
    socket.destroy()
    return serialNumber
  }
  const first = await shown()
  t.equal(await shown(), first)
  pair = await issued()
  await until('the new certificate', async () => (await shown()) !== first)
})

void t.test('an intermediate that is the whole --client-ca is an anchor', async (t) => {
  const signer = await intermediateAuthority()
  const { ask } = await serving(t, { clientCa: () => signer.certificate })
  const answered = async (by: CertificateAuthority): Promise<number> => {
    const { certificate: cert, key } = await by.issue({ commonName: 'api', usage: 'client' })
    return (await ask('POST', '/mutate/nodes', admission(node), { cert, key })).status
  }
  t.equal(await answered(signer), 200)
  t.equal(await answered(await intermediateAuthority()), 401, 'another one of that name')
})
