import t from 'tap'
import type { SeenRequest } from '../../src/sandbox/requests.ts'
import type { Client } from '../kit/client.ts'
import { nodeName, podsOfNode } from '../kit/cloud.ts'
import { startOnlineHub, startCloud, type CloudServer, type TestHub } from '../kit/hub.ts'
import { dial, type Teardown } from '../kit/wire/wire.ts'

const configMaps = '/api/v1/namespaces/default/configmaps'
const isBogus = ({ headers }: SeenRequest): boolean =>
  String(headers['authorization']).startsWith('Bearer bogus')

/** What a request came to: an API server saw it, or the hub refused it at once with this status. */
type Outcome = 'seen' | number

/**
 * A program that invents a token for each of its requests; API servers take long to refuse them.
 */
class Flood {
  readonly #t: Teardown
  readonly #cloud: CloudServer
  readonly #hub: TestHub
  #count = 0

  constructor(t: Teardown, cloud: CloudServer, hub: TestHub) {
    this.#t = t
    this.#cloud = cloud
    this.#hub = hub
  }

  /**
   * Sends that many requests, each on a connection of its own that stays open, and one after
   * another.
   */
  async send(count: number, head: (path: string) => string): Promise<Outcome[]> {
    const outcomes: Outcome[] = []
    for (let i = 0; i < count; i++) outcomes.push(await this.#one(head))
    return outcomes
  }

  async #one(head: (path: string) => string): Promise<Outcome> {
    const number = this.#count++
    const [line = '', ...rest] = head(`${configMaps}?n=${number}`).split('\r\n')
    const seen = this.#cloud.sandbox.nextRequest(({ query }) => query.get('n') === `${number}`)
    const wire = await dial(this.#t, Number(new URL(this.#hub.url).port))
    const fields = ['Host: localhost', `Authorization: Bearer bogus-${number}`, ...rest]
    wire.write([line, ...fields].join('\r\n'))
    const refused = wire.head().then(
      ({ line: status }) => Number(status.split(' ')[1]),
      () => 0,
    )
    return Promise.race([seen.then(() => 'seen' as const), refused])
  }
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\n\r\n`
const watch = (path: string): string => get(`${path}&watch=true`)
const posted = (path: string): string =>
  `POST ${path} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`
const slowly = (path: string): string =>
  `POST ${path} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`
const hugeAndSlow = (path: string): string =>
  `POST ${path} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 3000000\r\n\r\n{`

const passed = (outcomes: readonly Outcome[]): number =>
  outcomes.filter((outcome) => outcome === 'seen').length

/** What a kubelet does all the time: reads, its lease, Events. Statuses, in this order. */
async function workOf(kubelet: Client, round: number): Promise<number[]> {
  const lease = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${nodeName}`
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `a.${round}`, namespace: 'default' },
    involvedObject: { kind: 'Pod', name: 'a', namespace: 'default' },
  }
  const held = JSON.parse((await kubelet.get(lease)).body.toString()) as Record<string, unknown>
  const answers = [
    await kubelet.get(podsOfNode),
    await kubelet.get('/api/v1/namespaces/default/pods/a'),
    await kubelet.send(lease, {
      method: 'PUT',
      body: { ...held, spec: { holderIdentity: nodeName, leaseDurationSeconds: 40 + round } },
    }),
    await kubelet.send('/api/v1/namespaces/default/events', { method: 'POST', body: event }),
  ]
  return answers.map(({ status }) => status)
}

async function start(t: Teardown, options: { flags?: string[]; config?: object }) {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  cloud.sandbox.create(
    { group: 'coordination.k8s.io', version: 'v1', resource: 'leases' },
    {
      metadata: { name: nodeName, namespace: 'kube-node-lease' },
      spec: { holderIdentity: nodeName, leaseDurationSeconds: 40 },
    },
  )
  const hub = await startOnlineHub(t, { upstreams: [cloud], ...options })
  const workload = hub.as('coredns', { token: cloud.sandbox.token('coredns') })
  await workload.get(configMaps)
  return { cloud, hub, workload, kubelet: hub.as('kubelet') }
}

const shed = async (hub: TestHub, level: string): Promise<number> => {
  const reasons = ['in-flight', 'slow-body', 'memory']
  const counts = await Promise.all(
    reasons.map((reason) =>
      hub.metric(`nodehub_requests_rejected_total{reason="${reason}",priority_level="${level}"}`),
    ),
  )
  return counts.reduce((sum, count) => sum + count, 0)
}

const kinds: readonly (readonly [what: string, head: (path: string) => string, passes: number])[] =
  [
    ['requests', get, 2],
    ['watches', watch, 2],
    // Each new slow body replaces the one that began first.
    ['slow bodies', slowly, 30],
    ['bodies', posted, 2],
  ]

for (const [what, head, passes] of kinds) {
  void t.test(`no number of ${what} with made-up tokens keeps the node waiting`, async (t) => {
    const { cloud, hub, workload, kubelet } = await start(t, {
      flags: ['--max-requests-in-flight=20'],
    })
    using _frozen = cloud.sandbox.faults.freeze(isBogus)
    const outcomes = await new Flood(t, cloud, hub).send(30, head)
    t.equal(
      passed(outcomes),
      passes,
      'a tenth of the seats is for callers that have proved nothing',
    )
    t.strictSame(
      outcomes.filter((outcome) => outcome !== 'seen').filter((outcome) => outcome !== 429),
      [],
    )
    t.equal(await shed(hub, 'unproven'), 28)
    for (let round = 0; round < 3; round++)
      t.strictSame(await workOf(kubelet, round), [200, 200, 200, 201], `round ${round}`)
    t.equal((await workload.get(configMaps)).status, 200, 'nor a program whose token is proven')
    for (const level of ['node', 'workload']) t.equal(await shed(hub, level), 0, level)
    t.equal(await hub.metric('nodehub_flowcontrol_limit_seats{priority_level="unproven"}'), 2)
  })
}

void t.test('slow bodies with made-up tokens never evict a slow body of the node', async (t) => {
  const { cloud, hub } = await start(t, { flags: ['--max-requests-in-flight=2'] })
  using _frozen = cloud.sandbox.faults.freeze(isBogus)
  const body = JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'of-node' },
  })
  const ofNode = await dial(t, Number(new URL(hub.url).port))
  const seen = cloud.sandbox.nextRequest(({ method }) => method === 'POST')
  ofNode.write(
    slowly(configMaps)
      .replace('1000', String(body.length))
      .replace('\r\n', '\r\nHost: localhost\r\n'),
  )
  await seen
  t.equal(passed(await new Flood(t, cloud, hub).send(10, slowly)), 10)
  t.equal((await ofNode.write(body.slice(1)).answer()).status, 201)
  t.equal(await shed(hub, 'node'), 0)
  t.equal(await shed(hub, 'unproven'), 9)
})

void t.test(
  'large bodies with made-up tokens do not starve the node where memory is short',
  async (t) => {
    const { cloud, hub, workload, kubelet } = await start(t, {
      config: { memoryLimitBytes: 96 * 1024 * 1024 },
    })
    using _frozen = cloud.sandbox.faults.freeze(isBogus)
    const outcomes = await new Flood(t, cloud, hub).send(30, hugeAndSlow)
    t.equal(passed(outcomes), 30, 'one at a time: each new one ends the one before')
    t.strictSame(await workOf(kubelet, 0), [200, 200, 200, 201])
    t.equal((await workload.get(configMaps)).status, 200)
    for (const level of ['node', 'workload']) t.equal(await shed(hub, level), 0, level)
  },
)

void t.test(
  'a new token is served once seats are free, and then has its own priority level',
  async (t) => {
    const { cloud, hub } = await start(t, { flags: ['--max-requests-in-flight=20'] })
    const unproven = 'nodehub_flowcontrol_current_executing_seats{priority_level="unproven"}'
    const fresh = hub.as('flanneld', { token: cloud.sandbox.token('flanneld') })
    {
      using _frozen = cloud.sandbox.faults.freeze(isBogus)
      await new Flood(t, cloud, hub).send(3, get)
      t.equal((await fresh.get(configMaps)).status, 429)
      t.equal(await hub.metric(unproven), 2)
    }
    await hub.logs(
      () =>
        hub.answers.filter(({ code, path }) => code === 401 && path === configMaps).length === 2,
    )
    t.equal(await hub.metric(unproven), 0)
    using _frozen = cloud.sandbox.faults.freeze(isBogus)
    t.equal((await fresh.get(configMaps)).status, 200)
    await new Flood(t, cloud, hub).send(3, get)
    t.equal((await fresh.get(configMaps)).status, 200, 'it is proven')
  },
)
