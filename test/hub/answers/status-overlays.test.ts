import t from 'tap'
import type { ApiObject } from '../../../src/api/kube/object.ts'
import {
  maxBytes,
  maxOverlays,
  StatusOverlays,
  type OverlayKey,
} from '../../../src/hub/answers/status-overlays.ts'
import { objectRepresentation } from '../../../src/api/request/representation.ts'
import { nodeIdentity } from '../../../src/api/request/identity.ts'

const gvk = { group: '', version: 'v1', kind: 'Pod' }
const gvr = { group: '', version: 'v1', resource: 'pods' }
const representation = objectRepresentation('json')

const pod = (uid: string): ApiObject => ({
  namespace: 'default',
  name: 'a',
  uid,
  resourceVersion: '5',
  bytes: Buffer.from(
    JSON.stringify({ metadata: { name: 'a', uid }, status: { phase: 'Pending' } }),
  ),
})
const kubelet: OverlayKey = { identity: nodeIdentity, gvr, namespace: 'default', name: 'a' }
const running = [{ path: ['status', 'phase'] as const, value: 'Running' }]

const shown = (overlays: StatusOverlays, of: OverlayKey, uid = 'first'): unknown => {
  const { bytes } = overlays.show(of, representation, { gvk, object: pod(uid) })
  return (JSON.parse(Buffer.from(bytes).toString()) as { status: { phase: string } }).status.phase
}

function written(): StatusOverlays {
  const overlays = new StatusOverlays()
  overlays.set(kubelet, 'json', { gvk, object: pod('first') }, running)
  return overlays
}

void t.test('a written status is not shown on the object’s successor', async (t) => {
  const overlays = written()
  t.equal(shown(overlays, kubelet, 'second'), 'Pending')
  t.strictSame(
    overlays.lastShown(kubelet, 'json', { gvk, object: pod('second') }).bytes,
    pod('second').bytes,
    'nor is a patch made on it',
  )
  t.equal(shown(overlays, kubelet), 'Running')
})

const named = (name: string): OverlayKey => ({ ...kubelet, name })

void t.test('beyond the limit of objects the least recently used status is dropped', async (t) => {
  const overlays = new StatusOverlays()
  const keep = (name: string): ApiObject =>
    overlays.set(named(name), 'json', { gvk, object: pod('first') }, running)
  for (let i = 0; i < maxOverlays; i++) keep(String(i))
  t.equal(shown(overlays, named('0')), 'Running', 'which is a use of it')
  keep('one more')
  t.strictSame(
    ['0', '1', '2', 'one more'].map((name) => shown(overlays, named(name))),
    ['Running', 'Pending', 'Running', 'Running'],
  )
})

void t.test('beyond the limit of bytes the oldest status is dropped', async (t) => {
  const overlays = new StatusOverlays()
  const half = 'x'.repeat(maxBytes / 2 - 1_000)
  for (const name of ['first', 'second', 'third']) {
    const said = [...running, { path: ['status', 'message'] as const, value: half }]
    overlays.set(named(name), 'json', { gvk, object: pod('first') }, said)
  }
  t.strictSame(
    ['first', 'second', 'third'].map((name) => shown(overlays, named(name))),
    ['Pending', 'Running', 'Running'],
  )
})
