import t from 'tap'
import { Leadership } from '../../src/cluster/leadership.ts'
import { onAbort } from '../../src/base/abort.ts'
import type { GVR } from '../../src/api/kube/gvk.ts'
import { textAt } from '../../src/api/kube/json-at.ts'
import { startTestCluster, type TestCluster } from '../kit/cluster-api.ts'
import { Condition } from '../kit/condition.ts'
import { inTime } from '../kit/until.ts'

t.setTimeout(300_000)

const leases: GVR = { group: 'coordination.k8s.io', version: 'v1', resource: 'leases' }

/** Shorter than in production, in the same proportions. */
const times = { leaseMs: 3000, renewMs: 2000, retryMs: 300 }

class Candidate {
  readonly terms: AbortSignal[] = []
  readonly leadership: Leadership

  constructor(
    identity: string,
    { api }: Pick<TestCluster, 'api'>,
    seen: Condition,
    onStart: (candidate: Candidate) => void = () => undefined,
  ) {
    this.leadership = new Leadership({
      ...times,
      namespace: 'kube-system',
      name: 'nodehub-cluster',
      identity,
      api,
      lead: async (term) => {
        onStart(this)
        this.terms.push(term)
        seen.changed()
        await new Promise<void>((resolve) => void onAbort(term, resolve))
        seen.changed()
      },
      onFailure: () => undefined,
      onChange: () => seen.changed(),
    })
  }

  get leads(): boolean {
    return this.terms.at(-1)?.aborted === false
  }
}

/** Resolves when the first term of a candidate is over. */
const ended = ({ terms }: Candidate): Promise<void> =>
  inTime('the term to end', new Promise((resolve) => void onAbort(terms[0]!, resolve)), {
    seconds: 20,
  })

void t.test('a leader that stops releases the lease, and the other leads at once', async (t) => {
  const cluster = await startTestCluster(t)
  const seen = new Condition()
  const first = new Candidate('a', cluster, seen)
  await seen.until(() => first.leads)
  const second = new Candidate('b', cluster, seen, () => t.notOk(first.leads, 'never two'))
  t.teardown(() => second.leadership[Symbol.asyncDispose]())
  await cluster.sandbox.nextRequest(({ method }) => method === 'PUT')
  t.equal(second.terms.length, 0)
  await first.leadership[Symbol.asyncDispose]()
  t.ok(first.terms[0]?.aborted)
  const left = cluster.sandbox.get(leases, 'nodehub-cluster', 'kube-system')
  t.not(textAt(left, 'spec', 'holderIdentity'), 'a', 'it is free without waiting for its end')
  await seen.until(() => second.leads)
  const lease = cluster.sandbox.get(leases, 'nodehub-cluster', 'kube-system')
  t.match(lease?.['spec'], { holderIdentity: 'b', leaseTransitions: 1 })
})

void t.test('another leads when the leader has no link, never both', async (t) => {
  const cluster = await startTestCluster(t)
  const seen = new Condition()
  let cut = false
  const api = await cluster.connect()
  const send = api.send.bind(api)
  // As if this client's link were down: the other one's is not.
  api.send = (request) => (cut ? Promise.reject(new Error('no link')) : send(request))
  const first = new Candidate('a', { api }, seen)
  t.teardown(() => first.leadership[Symbol.asyncDispose]())
  await seen.until(() => first.leads)
  const second = new Candidate('b', cluster, seen, () => t.notOk(first.leads, 'never two'))
  t.teardown(() => second.leadership[Symbol.asyncDispose]())
  cut = true
  await seen.until(() => second.leads)
  t.ok(first.terms[0]?.aborted)
  cut = false
  await second.leadership[Symbol.asyncDispose]()
  await seen.until(() => first.leads)
  t.equal(first.terms.length, 2, 'it leads again when it is its turn')
})

void t.test('a renewal that hangs does not keep a term from ending', async (t) => {
  const cluster = await startTestCluster(t)
  const seen = new Condition()
  const api = await cluster.connect()
  const send = api.send.bind(api)
  const released = Promise.withResolvers<void>()
  let hangs = false
  api.send = (request) => (hangs ? released.promise.then(() => send(request)) : send(request))
  const first = new Candidate('a', { api }, seen)
  await seen.until(() => first.leads)
  hangs = true
  await ended(first)
  t.notOk(first.leads)
  hangs = false
  released.resolve()
  await first.leadership[Symbol.asyncDispose]()
})
