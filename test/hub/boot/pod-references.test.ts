import t from 'tap'
import { maxParsedPods, PodReferencesByVersion } from '../../../src/hub/boot/pod-references.ts'
import { MalformedBody } from '../../../src/api/codec/malformed-body.ts'
import type { ApiObject } from '../../../src/api/kube/object.ts'

const kind = { encoding: 'json', gvk: { group: '', version: 'v1', kind: 'Pod' } } as const

function pod(secretName: string, resourceVersion: string, uid = 'u'): ApiObject {
  const metadata = { name: 'press', namespace: 'plant', uid, resourceVersion }
  const spec = { volumes: [{ name: 'v', secret: { secretName } }] }
  return { ...metadata, bytes: Buffer.from(JSON.stringify({ metadata, spec })) }
}

const namesOf = ({ references }: ReturnType<PodReferencesByVersion['of']>): readonly string[] =>
  references instanceof MalformedBody ? [] : references.objects.map(({ name }) => name)

void t.test('a pod is parsed once for each of its versions', async (t) => {
  const references = new PodReferencesByVersion()
  const first = references.of(pod('one', '5'), kind)
  t.strictSame(namesOf(first), ['one'])
  t.equal(references.of(pod('one', '5'), kind), first)
  t.strictSame(namesOf(references.of(pod('two', '6'), kind)), ['two'])
  t.strictSame(namesOf(references.of(pod('one', '5'), kind)), ['one'])
})

void t.test('a pod recreated under the same name is parsed anew', async (t) => {
  const references = new PodReferencesByVersion()
  references.of(pod('one', '5'), kind)
  t.strictSame(namesOf(references.of(pod('two', '5', 'other'), kind)), ['two'])
})

void t.test('beyond the pods that a node runs the oldest are dropped', async (t) => {
  const references = new PodReferencesByVersion()
  const first = references.of(pod('one', '5'), kind)
  for (let at = 0; at < maxParsedPods; at += 1) references.of(pod('two', '5', `u${at}`), kind)
  const again = references.of(pod('one', '5'), kind)
  t.not(again, first)
  t.strictSame(again, first)
})

void t.test('a malformed pod is known as such each time', async (t) => {
  const references = new PodReferencesByVersion()
  const broken = { ...pod('one', '5'), bytes: Buffer.from('{"spec":{"volumes":[{') }
  for (const _time of ['once', 'again'])
    t.match(references.of(broken, kind).references, { code: 'MALFORMED_BODY' })
})
