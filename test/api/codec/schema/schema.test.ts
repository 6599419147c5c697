import t from 'tap'
import { schemaOf, type MessageSchema } from '../../../../src/api/codec/schema/schema.ts'
import { parseApiVersion, type GVK } from '../../../../src/api/kube/gvk.ts'

const gvk = (apiVersion: string, kind: string): GVK => ({ ...parseApiVersion(apiVersion), kind })

const listed = [
  ...'Pod Node Service Endpoints ConfigMap Secret Event Namespace ServiceAccount PersistentVolumeClaim PersistentVolume'
    .split(' ')
    .map((kind) => gvk('v1', kind)),
  gvk('discovery.k8s.io/v1', 'EndpointSlice'),
  gvk('events.k8s.io/v1', 'Event'),
  gvk('coordination.k8s.io/v1', 'Lease'),
  gvk('storage.k8s.io/v1', 'CSINode'),
  gvk('storage.k8s.io/v1', 'CSIDriver'),
  gvk('storage.k8s.io/v1', 'VolumeAttachment'),
  gvk('node.k8s.io/v1', 'RuntimeClass'),
  gvk('meta.k8s.io/v1', 'PartialObjectMetadata'),
]

const alone = [
  gvk('v1', 'Status'),
  gvk('v1', 'APIResourceList'),
  gvk('v1', 'DeleteOptions'),
  gvk('authentication.k8s.io/v1', 'TokenRequest'),
  gvk('authentication.k8s.io/v1', 'TokenReview'),
  gvk('authorization.k8s.io/v1', 'SubjectAccessReview'),
]

function known(kind: GVK): MessageSchema {
  const schema = schemaOf(kind)
  if (!schema) throw new Error(`no schema of ${kind.kind}`)
  return schema
}

/** Every message that is reached from `schemas`. */
function reached(schemas: readonly MessageSchema[], seen = new Set<MessageSchema>()) {
  for (const schema of schemas) {
    if (seen.has(schema)) continue
    seen.add(schema)
    reached(
      Object.values(schema.fields).flatMap(({ message }) => message?.() ?? []),
      seen,
    )
  }
  return seen
}

/** The numbers along a path, as bytes nest them. */
const numbersOf = (kind: GVK, path: string): readonly number[] => {
  let schema: MessageSchema | undefined = known(kind)
  return path.split('.').map((name) => {
    const field = schema?.fields[name]
    schema = field?.message?.()
    return field?.number ?? 0
  })
}

void t.test('a list holds its metadata at 1 and the objects of its kind at 2', async (t) => {
  for (const kind of listed) {
    const { fields } = known({ ...kind, kind: `${kind.kind}List` })
    t.equal(fields['metadata']?.number, 1)
    t.equal(fields['items']?.number, 2)
    t.equal(fields['items']?.repeated, true)
    t.equal(fields['items']?.message?.(), known(kind), kind.kind)
  }
})

void t.test('field numbers are unique, and only messages have a schema', async (t) => {
  const messages = reached([...listed, ...alone].map(known))
  t.ok(messages.size > 200)
  for (const { name, fields } of messages) {
    const numbers = Object.values(fields).map(({ number }) => number)
    t.equal(new Set(numbers).size, numbers.length, name)
    for (const field of Object.values(fields)) t.equal('message' in field, field.type === 'message')
  }
})

void t.test('fields that filters edit have the API’s numbers', async (t) => {
  const pod = gvk('v1', 'Pod')
  t.strictSame(numbersOf(pod, 'spec.hostNetwork'), [2, 11])
  t.strictSame(numbersOf(pod, 'spec.containers.ports.hostPort'), [2, 2, 6, 2])
  t.strictSame(numbersOf(pod, 'spec.volumes.volumeSource.projected.sources'), [2, 1, 2, 26, 1])
  t.strictSame(numbersOf(pod, 'status.conditions.lastTransitionTime'), [3, 2, 4])
  t.strictSame(numbersOf(pod, 'metadata.annotations'), [1, 12])
  t.strictSame(numbersOf(gvk('v1', 'Node'), 'status.nodeInfo.kubeletVersion'), [3, 7, 7])
  t.strictSame(numbersOf(gvk('v1', 'Service'), 'spec.ports.targetPort'), [2, 1, 4])
  const slice = gvk('discovery.k8s.io/v1', 'EndpointSlice')
  t.strictSame(numbersOf(slice, 'endpoints.hints.forZones.name'), [2, 8, 1, 1])
})

void t.test('equal messages of two versions share a schema', async (t) => {
  const [newer, older] = ['v1', 'v1beta1'].map(
    (version) => known(gvk(`discovery.k8s.io/${version}`, 'EndpointSlice')).fields,
  )
  t.ok(newer?.['ports']?.message)
  t.equal(newer?.['ports']?.message?.(), older?.['ports']?.message?.())
  t.not(newer?.['endpoints']?.message?.(), older?.['endpoints']?.message?.())
})

void t.test('a version or group that is not known has no schema', async (t) => {
  t.equal(schemaOf(gvk('v2', 'Pod')), undefined)
  t.equal(schemaOf(gvk('apps/v1', 'Pod')), undefined)
  t.equal(schemaOf(gvk('v1', 'constructor')), undefined)
  t.equal(schemaOf(gvk('apps.openyurt.io/v1beta2', 'NodePool')), undefined)
})
