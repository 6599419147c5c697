import t from 'tap'
import { objectKind } from '../../../src/api/codec/list.ts'
import { selectEvent, selectionOf, type Selectors } from '../../../src/api/codec/selection.ts'
import { isObjectEvent, type ObjectEvent } from '../../../src/api/codec/watch.ts'
import type { GVK, GVR } from '../../../src/api/kube/gvk.ts'
import type { Encoding, Projection } from '../../../src/api/kube/media-type.ts'
import type { ApiObject } from '../../../src/api/kube/object.ts'
import { cutList } from '../../contracts/cutter-list.ts'
import { fixture } from '../../kit/fixture.ts'

const core = (resource: string): GVR => ({ group: '', version: 'v1', resource })
const pods = core('pods')
const whole = { encoding: 'json', projection: 'object' } as const

const selectors = (fieldSelector = '', labelSelector = '', namespace?: string): Selectors => ({
  ...(namespace !== undefined && { namespace }),
  labelSelector,
  fieldSelector,
})

/** The names of what is selected from a list that an API server gave. */
function selected(
  file: string,
  gvr: GVR,
  asked: Selectors,
  encoding: Encoding,
  projection: Projection = 'object',
): string[] | undefined {
  const bytes = fixture(`${file}.${encoding === 'json' ? 'json' : 'pb'}`)
  const { objects, end } = cutList(encoding, projection, [bytes])
  const selection = selectionOf(gvr, asked, { encoding, projection })
  return (
    selection &&
    objects
      .filter((object) => selection.selects(objectKind(end.gvk), encoding, object))
      .map(({ name }) => name)
  )
}

function json(metadata: object, rest: object = {}): ApiObject {
  const bytes = Buffer.from(JSON.stringify({ metadata, ...rest }))
  return { namespace: 'n', name: 'a', uid: 'u', resourceVersion: '1', ...metadata, bytes }
}

/** Whether an object with this content is selected. */
const selects = (gvr: GVR, kind: string, content: object, fieldSelector: string) =>
  selectionOf(gvr, selectors(fieldSelector), whole)?.selects(
    { ...gvr, kind },
    'json',
    json({}, content),
  )

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`selectors filter an API server’s list in ${encoding}`, async (t) => {
    const from = (...asked: Parameters<typeof selectors>) =>
      selected('pods-list', pods, selectors(...asked), encoding)
    const all = from() ?? []
    t.ok(all.length > 2)
    t.strictSame(from('', 'app=collector'), ['collector-a', 'collector-b'])
    t.strictSame(
      from('', '!app'),
      all.filter((name) => !name.startsWith('collector')),
    )
    t.strictSame(from('metadata.name=collector-a,metadata.namespace=plant'), ['collector-a'])
    t.strictSame(from('metadata.name=collector-a', '', 'elsewhere'), [])
    t.strictSame(from('', '', 'plant')?.includes('collector-a'), true)
    t.strictSame(from('spec.hostNetwork=false'), from('spec.hostNetwork!=true'))
    t.strictSame(
      [...(from('spec.hostNetwork=true') ?? []), ...(from('spec.hostNetwork=false') ?? [])].sort(),
      all.toSorted(),
    )
    t.strictSame(from('spec.restartPolicy=Always,spec.schedulerName=default-scheduler'), all)
    // The server takes this field, and never fills it.
    t.strictSame(from('status.podIPs!=10.0.0.1'), all)
    t.strictSame(from('spec.host='), from('spec.nodeName='))

    const nodes = (field: string) =>
      selected('nodes-list', core('nodes'), selectors(field), encoding)
    t.ok((nodes('spec.unschedulable=false') ?? []).length > 0)
    t.strictSame(nodes('spec.unschedulable='), [])
    t.equal(nodes('metadata.namespace='), undefined)

    const services = (field: string) =>
      selected('services-list', core('services'), selectors(field), encoding)
    t.strictSame(services('spec.clusterIP!=None,spec.type=ClusterIP'), ['web'])
    t.strictSame(services('spec.clusterIP=None'), ['headless'])
  })
}

void t.test('spec.nodeName selects as the API server does', async (t) => {
  const asked = cutList('json', 'object', [fixture('pods-on-node.json')])
  const [first] = asked.objects
  const { spec } = JSON.parse(Buffer.from(first?.bytes ?? []).toString()) as {
    spec: { nodeName: string }
  }
  for (const encoding of ['json', 'protobuf'] as const) {
    t.strictSame(
      selected('pods-list', pods, selectors(`spec.nodeName=${spec.nodeName}`), encoding),
      asked.objects.map(({ name }) => name),
    )
  }
})

void t.test('field selectors match the same as at an API server', async (t) => {
  const pod = {
    spec: {
      nodeName: 'edge-1',
      restartPolicy: 'Never',
      schedulerName: 'default-scheduler',
      serviceAccountName: 'default',
      hostNetwork: true,
    },
    status: {
      phase: 'Running',
      podIP: '10.0.0.1',
      podIPs: [{ ip: '10.0.0.1' }],
      nominatedNodeName: 'edge-2',
    },
  }
  const job = { group: 'batch', version: 'v1', resource: 'jobs' }
  const newerEvents = { group: 'events.k8s.io', version: 'v1', resource: 'events' }
  const about = { kind: 'Pod', namespace: 'n', name: 'p', uid: 'u', apiVersion: 'v1' }
  const cases: readonly (readonly [GVR, string, object, yes: string[], no: string[]])[] = [
    [
      pods,
      'Pod',
      pod,
      [
        'spec.nodeName=edge-1',
        'spec.host=edge-1',
        'spec.restartPolicy=Never',
        'spec.schedulerName=default-scheduler',
        'spec.serviceAccountName=default',
        'spec.hostNetwork=true',
        'status.phase=Running',
        'status.podIP=10.0.0.1',
        'status.podIPs=',
        'status.nominatedNodeName=edge-2',
      ],
      ['spec.nodeName!=edge-1', 'status.podIPs=10.0.0.1', 'spec.hostNetwork=false'],
    ],
    [
      pods,
      'Pod',
      {},
      ['spec.hostNetwork=false', 'spec.nodeName=', 'status.phase!=Running'],
      ['spec.hostNetwork='],
    ],
    [core('nodes'), 'Node', { spec: { unschedulable: true } }, ['spec.unschedulable=true'], []],
    [core('nodes'), 'Node', {}, ['spec.unschedulable=false'], ['spec.unschedulable=']],
    [core('namespaces'), 'Namespace', { status: { phase: 'Active' } }, ['status.phase=Active'], []],
    [core('secrets'), 'Secret', { type: 'Opaque' }, ['type=Opaque'], ['type!=Opaque']],
    [
      core('services'),
      'Service',
      { spec: { clusterIP: 'None', type: 'ClusterIP' } },
      ['spec.type=ClusterIP', 'spec.clusterIP=None'],
      ['spec.clusterIP!=None', 'spec.type=NodePort'],
    ],
    [
      core('replicationcontrollers'),
      'ReplicationController',
      { status: { replicas: 2 } },
      ['status.replicas=2'],
      ['status.replicas=0'],
    ],
    [job, 'Job', { status: {} }, ['status.successful=0'], ['status.successful=']],
    [
      core('events'),
      'Event',
      {
        involvedObject: about,
        reason: 'Killing',
        type: 'Normal',
        source: { component: 'kubelet' },
        reportingComponent: 'other',
      },
      [
        ...Object.entries(about).map(([name, value]) => `involvedObject.${name}=${value}`),
        'involvedObject.fieldPath=',
        'involvedObject.resourceVersion=',
        'reason=Killing',
        'type=Normal',
        'source=kubelet',
        'reportingComponent=other',
      ],
      ['source=other'],
    ],
    // An event of the newer kind has no source; its reporter stands in.
    [core('events'), 'Event', { reportingComponent: 'scheduler' }, ['source=scheduler'], []],
    [
      newerEvents,
      'Event',
      { regarding: about, reason: 'Killing', type: 'Normal', reportingController: 'kubelet' },
      [
        ...Object.entries(about).map(([name, value]) => `regarding.${name}=${value}`),
        'reason=Killing,type=Normal,reportingController=kubelet',
      ],
      [],
    ],
    [
      { group: 'resource.k8s.io', version: 'v1', resource: 'resourceslices' },
      'ResourceSlice',
      { spec: { nodeName: 'edge-1', driver: 'gpu' } },
      ['spec.nodeName=edge-1,spec.driver=gpu'],
      [],
    ],
  ]
  for (const [gvr, kind, content, yes, no] of cases) {
    for (const field of yes) t.equal(selects(gvr, kind, content, field), true, `${kind} ${field}`)
    for (const field of no) t.equal(selects(gvr, kind, content, field), false, `${kind} ${field}`)
  }
})

void t.test('undecidable selectors are refused', async (t) => {
  const of = (
    gvr: GVR,
    asked: Selectors,
    encoding: Encoding = 'json',
    projection: Projection = 'object',
  ) => selectionOf(gvr, asked, { encoding, projection })
  const widgets = { group: 'example.com', version: 'v1', resource: 'widgets' }
  t.equal(of(pods, selectors('spec.nothing=1')), undefined, 'a field no pod is selected by')
  t.equal(of(widgets, selectors('spec.colour=red')), undefined, 'that of a custom resource')
  t.ok(of(widgets, selectors('metadata.name=a,metadata.namespace=b')))
  t.equal(of(core('events'), selectors('regarding.name=a')), undefined, 'the other name of a field')
  for (const projection of ['metadata', 'table'] as const) {
    t.equal(
      of(pods, selectors('spec.nodeName=a'), 'json', projection),
      undefined,
      `in ${projection}`,
    )
    t.ok(of(pods, selectors('metadata.name=a', 'app=b'), 'json', projection))
  }
  const jobs = { group: 'batch', version: 'v1', resource: 'jobs' }
  t.equal(of(jobs, selectors('status.successful=1'), 'protobuf'), undefined, 'in unknown messages')
  t.throws(() => of(pods, selectors('bad')), { code: 'MALFORMED_SELECTOR' })
  t.throws(() => of(pods, selectors('', 'a b')), { code: 'MALFORMED_SELECTOR' })
})

const podKind: GVK = { group: '', version: 'v1', kind: 'Pod' }
const frame = Buffer.from('frame')
const pod = (app: string, version: string, name = 'a'): ApiObject =>
  json({ namespace: 'n', name, resourceVersion: version, labels: { app } })

/** Type, version and label of what is shown of an event, and whether its frame stands. */
function shown(
  type: ObjectEvent['type'],
  app: string,
  before?: string,
  asked = selectors('', 'app=x'),
) {
  const selection = selectionOf(pods, asked, whole)
  if (!selection) throw new Error('it is decidable')
  const previous = before === undefined ? undefined : pod(before, '1')
  const event = { type, object: pod(app, '2'), frame, ...(previous && { previous }) }
  const judged = selectEvent(selection, podKind, 'json', event)
  if (judged === undefined) return 'nothing'
  if (!isObjectEvent(judged)) return judged.type
  const { metadata } = JSON.parse(Buffer.from(judged.object.bytes).toString()) as {
    metadata: { resourceVersion: string; labels: { app: string } }
  }
  t.equal(metadata.resourceVersion, judged.object.resourceVersion)
  return [judged.type, metadata.resourceVersion, metadata.labels.app, judged.frame === frame]
}

void t.test('events of a wider watch are converted as by an API server', async (t) => {
  t.strictSame(shown('ADDED', 'x'), ['ADDED', '2', 'x', true])
  t.strictSame(shown('ADDED', 'y'), 'nothing')
  t.strictSame(shown('MODIFIED', 'x', 'x'), ['MODIFIED', '2', 'x', true])
  t.strictSame(shown('MODIFIED', 'x', 'y'), ['ADDED', '2', 'x', false])
  t.strictSame(shown('MODIFIED', 'y', 'x'), ['DELETED', '2', 'x', false])
  t.strictSame(shown('MODIFIED', 'y', 'y'), 'nothing')
  t.strictSame(shown('DELETED', 'x', 'x'), ['DELETED', '2', 'x', true])
  t.strictSame(shown('DELETED', 'y', 'y'), 'nothing')
})

void t.test('no deletion of an unknown object is lost', async (t) => {
  t.strictSame(shown('MODIFIED', 'x'), ['MODIFIED', '2', 'x', true])
  t.strictSame(shown('MODIFIED', 'y'), ['DELETED', '2', 'y', false])
  t.strictSame(shown('DELETED', 'x'), ['DELETED', '2', 'x', true])
  t.strictSame(shown('DELETED', 'y'), 'nothing')
})

void t.test('an object excluded by name is never shown, nor DELETED', async (t) => {
  const other = selectors('metadata.name=b')
  t.strictSame(shown('MODIFIED', 'x', undefined, other), 'nothing')
  t.strictSame(shown('DELETED', 'x', 'x', selectors('', '', 'elsewhere')), 'nothing')
  t.strictSame(shown('MODIFIED', 'x', undefined, selectors()), ['MODIFIED', '2', 'x', true])
})
