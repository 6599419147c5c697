import t from 'tap'
import {
  breaksBaseline,
  happenedFrom,
  hasTakenUp,
  tellsOf,
  timesTold,
} from '../../../bench/host-network/observed.ts'
import type { Change, State } from '../../../bench/host-network/series.ts'

const change = (ms: number, pod: string, state: State): Change => ({ ms, pod, state })

const both = [change(100, 'a', 'Serving'), change(200, 'b', 'Serving')]

void t.test('short of service is the time with fewer pods than before', async (t) => {
  const changes = [...both, change(1_000, 'a', 'Gone'), change(4_000, 'c', 'Serving')]
  t.strictSame(happenedFrom(900, 2, { changes, endMs: 9_000 }), {
    atMs: 900,
    shortMs: 3_000,
    noneMs: 0,
  })
})

void t.test('a pod without a replacement is not missed', async (t) => {
  const changes = [...both, change(1_000, 'a', 'Gone')]
  t.strictSame(happenedFrom(900, 2, { changes, endMs: 9_000 }), {
    atMs: 900,
    shortMs: 0,
    noneMs: 0,
  })
})

void t.test('a pod that does not recover is missed until the end', async (t) => {
  const changes = [...both, change(1_000, 'a', 'Stuck'), change(2_000, 'b', 'Stuck')]
  t.strictSame(happenedFrom(900, 2, { changes, endMs: 9_000 }), {
    atMs: 900,
    shortMs: 8_000,
    noneMs: 7_000,
  })
})

void t.test('a change at the moment of the event is counted', async (t) => {
  const changes = [
    ...both,
    change(1_000, 'a', 'Starting'),
    change(1_000, 'b', 'Starting'),
    change(3_000, 'a', 'Serving'),
    change(5_000, 'b', 'Shared'),
  ]
  t.strictSame(happenedFrom(1_000, 2, { changes, endMs: 9_000 }), {
    atMs: 1_000,
    shortMs: 4_000,
    noneMs: 2_000,
  })
})

void t.test('if no pod serves at the end, none is missed', async (t) => {
  const changes = [change(100, 'a', 'Stuck'), change(900, 'a', 'Gone')]
  t.strictSame(happenedFrom(500, 1, { changes, endMs: 2_000 }), {
    atMs: 500,
    shortMs: 0,
    noneMs: 0,
  })
})

void t.test('Events of a former row’s pods are not counted', async (t) => {
  const event = (uid: string, more = {}) => ({
    reason: 'Killing',
    involvedObject: { kind: 'Pod', uid },
    ...more,
  })
  const list = [event('former'), event('its'), event('its', { count: 3 })]
  t.strictSame(timesTold(list, new Set(['its'])), { Killing: 4 })
})

void t.test('the status of a former container is ignored', async (t) => {
  const status = { containerStatuses: [{ name: 'main', containerID: 'containerd://former' }] }
  t.ok(tellsOf({ status }, 'former'))
  t.notOk(tellsOf({ status }, 'now'))
  t.notOk(tellsOf({ status }, undefined))
  t.notOk(tellsOf(undefined, 'now'))
})

void t.test('a Deployment is updated once its observedGeneration is the written one', async (t) => {
  const written = { metadata: { generation: 2 } }
  t.notOk(hasTakenUp({ status: { observedGeneration: 1 } }, written))
  t.notOk(hasTakenUp({}, written))
  t.ok(hasTakenUp({ status: { observedGeneration: 2 } }, written))
})

void t.test('a refusal by Pod Security is not one by RBAC', async (t) => {
  const forbidden = (why: string) => ({ code: 403, message: `pods "a" is forbidden: ${why}` })
  const why = 'host namespaces (hostNetwork=true)'
  t.ok(breaksBaseline(forbidden(`violates PodSecurity "baseline:latest": ${why}`)))
  t.notOk(breaksBaseline(forbidden(`violates PodSecurity "restricted:latest": ${why}`)))
  t.notOk(breaksBaseline(forbidden('User "bench" cannot create resource "pods"')))
})
