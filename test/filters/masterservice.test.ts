import t from 'tap'
import { masterservice } from '../../filters/masterservice.ts'
import { cursorOf } from '../../src/api/codec/cursor.ts'
import { objectKind } from '../../src/api/codec/list.ts'
import { Filters } from '../../src/hub/filter/filters.ts'
import type { Encoding } from '../../src/api/kube/media-type.ts'
import { cutList } from '../contracts/cutter-list.ts'
import { fixture } from '../kit/fixture.ts'
import { inputsOf } from '../kit/inputs.ts'
import { filterResult, createdFilter } from '../kit/filter-result.ts'

const address = { host: '169.254.2.1', port: 10268, forService: false }
const services = { group: '', version: 'v1', resource: 'services' }

const filters = new Filters([masterservice], inputsOf({ hubAddress: address }), {
  onFailure: (filter, cause) => t.fail(`${filter} failed`, { cause }),
  warn: () => undefined,
})

function servicesOf(name: string) {
  const encoding: Encoding = name.endsWith('.pb') ? 'protobuf' : 'json'
  const { objects, head } = cutList(encoding, 'object', [fixture(name)])
  return { encoding, objects, gvk: objectKind(head.gvk) }
}

void t.test('the kubelet gets the hub as service kubernetes', async (t) => {
  for (const name of ['kubernetes-service.json', 'kubernetes-service.pb']) {
    const { encoding, objects, gvk } = servicesOf(name)
    const [kubernetes] = objects
    if (!kubernetes) throw new Error('no service')
    for (const verb of ['get', 'list', 'watch'] as const) {
      const shown = filters.chainFor('kubelet', services, verb)?.apply(gvk, encoding, kubernetes)
      if (!shown) throw new Error('withheld')
      const { resourceVersion, uid } = kubernetes
      t.match(shown, { namespace: 'default', name: 'kubernetes', uid, resourceVersion })
      const cursor = cursorOf(encoding, gvk, shown)
      t.equal(cursor.value(['spec', 'clusterIP']), '169.254.2.1')
      t.equal(cursor.count(['spec', 'clusterIPs']), 1)
      t.equal(cursor.value(['spec', 'clusterIPs', 0]), '169.254.2.1')
      t.equal(cursor.value(['spec', 'ports', 0, 'port']), 10268)
      t.equal(cursor.value(['spec', 'ports', 0, 'targetPort']), 16543, 'the rest stays')
      t.equal(cursor.label('provider'), 'kubernetes')
    }
  }
})

void t.test('other services are left alone', async (t) => {
  for (const name of ['services-list.json', 'services-list.pb']) {
    const { encoding, objects, gvk } = servicesOf(name)
    const chain = filters.chainFor('kubelet', services, 'list')
    t.ok(objects.length > 0)
    for (const object of objects) t.equal(chain?.apply(gvk, encoding, object), object)
  }
})

void t.test(
  'a service of the same name elsewhere, and its neighbours, are left alone',
  async (t) => {
    const filter = createdFilter(masterservice, { hubAddress: address })
    const named = (name: string, namespace: string) => ({
      kind: 'Service',
      apiVersion: 'v1',
      metadata: { name, namespace, resourceVersion: '1' },
      spec: { clusterIP: '10.96.0.1', ports: [{ name: 'https', port: 443, targetPort: 6443 }] },
    })
    t.equal(filterResult(t, filter, named('kubernetes', 'kube-system')), 'left')
    t.equal(filterResult(t, filter, named('kubernetes-1', 'default')), 'left')
    t.not(filterResult(t, filter, named('kubernetes', 'default')), 'left')
  },
)

void t.test('only the port named https becomes the hub’s', async (t) => {
  const bytes = Buffer.from(
    '{"metadata":{"name":"kubernetes","namespace":"default"},' +
      '"spec":{"ports":[{"name":"http","port":80},{"name":"https","port":443}]}}',
  )
  const gvk = { group: '', version: 'v1', kind: 'Service' }
  const object = { namespace: 'default', name: 'kubernetes', uid: '', resourceVersion: '1', bytes }
  const shown = filters.chainFor('kubelet', services, 'get')?.apply(gvk, 'json', object)
  t.strictSame(JSON.parse(Buffer.from(shown?.bytes ?? []).toString()), {
    metadata: { name: 'kubernetes', namespace: 'default' },
    spec: {
      ports: [
        { name: 'http', port: 80 },
        { name: 'https', port: 10268 },
      ],
      clusterIP: '169.254.2.1',
      clusterIPs: ['169.254.2.1'],
    },
  })
})

void t.test('metadata of the service alone is left unchanged', async (t) => {
  const bytes = Buffer.from(
    '{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"kubernetes","namespace":"default"}}',
  )
  const gvk = { group: 'meta.k8s.io', version: 'v1', kind: 'PartialObjectMetadata' }
  const object = { namespace: 'default', name: 'kubernetes', uid: '', resourceVersion: '1', bytes }
  t.equal(filters.chainFor('kubelet', services, 'get')?.apply(gvk, 'json', object), object)
})

void t.test('it applies to the kubelet’s services, read and written', async (t) => {
  t.notOk(filters.chainFor('kube-proxy', services, 'list'))
  t.ok(filters.chainFor('kubelet', services, 'update'), 'as a read would show it')
  t.notOk(filters.chainFor('kubelet', { ...services, resource: 'pods' }, 'list'))
  t.notOk(filters.chainFor('kubelet', { ...services, group: 'apps' }, 'list'))
})

void t.test('without a hub address it does nothing', async (t) => {
  t.equal(
    masterservice.create({ hubAddress: null }, () => undefined),
    undefined,
  )
})
