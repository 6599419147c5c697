import t from 'tap'
import type { Json, JsonObject } from '../../../../src/api/kube/json.ts'
import { mergeSchemaOf } from '../../../../src/api/kube/patch/merge-schema.ts'
import { strategicMergePatch } from '../../../../src/api/kube/patch/strategic-merge-patch.ts'
import { failure } from './kit.ts'

const pod = mergeSchemaOf({ group: '', kind: 'Pod' })
const node = mergeSchemaOf({ group: '', kind: 'Node' })
const service = mergeSchemaOf({ group: '', kind: 'Service' })

/** What a patch of a pod's spec makes of it. */
const patchedSpec = (spec: JsonObject, patch: JsonObject): Json | undefined =>
  strategicMergePatch(pod, { spec }, { spec: patch })['spec']

void t.test('elements that are new come first, as the server puts them', async (t) => {
  const spec = patchedSpec(
    { containers: [{ name: 'a' }, { name: 'b' }] },
    {
      containers: [{ name: 'c', image: 'c:1' }],
    },
  )
  t.strictSame(spec, { containers: [{ name: 'c', image: 'c:1' }, { name: 'a' }, { name: 'b' }] })
})

void t.test('lists within elements of lists merge by their own keys', async (t) => {
  const containers = [
    {
      name: 'a',
      env: [{ name: 'X', value: '1' }],
      ports: [{ containerPort: 80, name: 'http' }],
      volumeMounts: [{ mountPath: '/a', name: 'v' }],
      args: ['1', '2'],
    },
  ]
  const patch = {
    name: 'a',
    env: [{ name: 'X', value: '2' }],
    ports: [{ containerPort: 80, protocol: 'TCP' }],
    volumeMounts: [{ mountPath: '/a', readOnly: true }],
    args: ['3'],
  }
  t.strictSame(patchedSpec({ containers }, { containers: [patch] }), {
    containers: [
      {
        name: 'a',
        env: [{ name: 'X', value: '2' }],
        ports: [{ containerPort: 80, name: 'http', protocol: 'TCP' }],
        volumeMounts: [{ mountPath: '/a', name: 'v', readOnly: true }],
        args: ['3'],
      },
    ],
  })
})

void t.test('tolerations and taints have no merge key and are replaced', async (t) => {
  const tolerations = [{ key: 'b' }]
  t.strictSame(patchedSpec({ tolerations: [{ key: 'a' }] }, { tolerations }), { tolerations })
  const taints = [{ key: 'b', effect: 'NoSchedule' }]
  t.strictSame(
    strategicMergePatch(node, { spec: { taints: [{ key: 'a' }] } }, { spec: { taints } }),
    { spec: { taints } },
  )
})

void t.test('ports of a service merge by port, addresses of a node by type', async (t) => {
  t.strictSame(
    strategicMergePatch(
      service,
      { spec: { ports: [{ port: 80, name: 'a' }] } },
      { spec: { ports: [{ port: 80, nodePort: 30080 }] } },
    ),
    { spec: { ports: [{ port: 80, name: 'a', nodePort: 30080 }] } },
  )
  t.strictSame(
    strategicMergePatch(
      node,
      { status: { addresses: [{ type: 'InternalIP', address: '10.0.0.1' }] } },
      { status: { addresses: [{ type: 'InternalIP', address: '10.0.0.2' }] } },
    ),
    { status: { addresses: [{ type: 'InternalIP', address: '10.0.0.2' }] } },
  )
})

void t.test('pod templates of workloads merge as pods do', async (t) => {
  const schema = mergeSchemaOf({ group: 'apps', kind: 'DaemonSet' })
  const of = (spec: JsonObject): JsonObject => ({ spec: { template: { spec } } })
  t.strictSame(
    strategicMergePatch(
      schema,
      of({ containers: [{ name: 'a', image: '1' }] }),
      of({ containers: [{ name: 'a', image: '2' }], hostNetwork: true }),
    ),
    of({ containers: [{ name: 'a', image: '2' }], hostNetwork: true }),
  )
})

void t.test('finalizers are a set, owners merge by uid, null removes', async (t) => {
  const schema = mergeSchemaOf({ group: 'coordination.k8s.io', kind: 'Lease' })
  const metadata = {
    labels: { a: '1', b: '2' },
    finalizers: ['x', 'y'],
    ownerReferences: [{ uid: 'u', name: 'n' }],
  }
  const patch = {
    metadata: {
      labels: { a: null, c: '3', d: null },
      finalizers: ['y', 'z'],
      ownerReferences: [{ uid: 'u', controller: true }],
    },
  }
  t.strictSame(strategicMergePatch(schema, { metadata }, patch), {
    metadata: {
      labels: { b: '2', c: '3' },
      finalizers: ['x', 'y', 'z'],
      ownerReferences: [{ uid: 'u', name: 'n', controller: true }],
    },
  })
})

void t.test('$patch: delete takes out an element, or empties an object', async (t) => {
  const containers = [{ name: 'a' }, { name: 'b' }, { name: 'c' }]
  t.strictSame(patchedSpec({ containers }, { containers: [{ $patch: 'delete', name: 'b' }] }), {
    containers: [{ name: 'a' }, { name: 'c' }],
  })
  t.strictSame(patchedSpec({ nodeSelector: { a: 'b' } }, { nodeSelector: { $patch: 'delete' } }), {
    nodeSelector: {},
  })
  t.strictSame(patchedSpec({}, { nodeSelector: { $patch: 'delete' } }), {})
})

void t.test('$patch: replace replaces an object, or as an element its whole list', async (t) => {
  t.strictSame(
    patchedSpec({ nodeSelector: { a: 'b' } }, { nodeSelector: { $patch: 'replace', c: 'd' } }),
    { nodeSelector: { c: 'd' } },
  )
  t.strictSame(
    patchedSpec(
      { containers: [{ name: 'a' }, { name: 'b' }] },
      { containers: [{ name: 'c' }, { $patch: 'replace' }] },
    ),
    { containers: [{ name: 'c' }] },
  )
  const ports = ['TCP', 'UDP'].map((protocol) => ({ containerPort: 53, protocol }))
  t.strictSame(
    patchedSpec(
      { containers: [{ name: 'a', ports: [{ containerPort: 80 }] }] },
      { containers: [{ name: 'a', ports: [{ $patch: 'replace' }, ...ports] }] },
    ),
    { containers: [{ name: 'a', ports }] },
    'elements that share a key are not merged',
  )
})

void t.test(
  '$retainKeys drops keys that it does not name, such as a volume’s old source',
  async (t) => {
    const volumes = [{ name: 'v', emptyDir: {} }, { name: 'w' }]
    const patch = { name: 'v', $retainKeys: ['name', 'configMap'], configMap: { name: 'c' } }
    t.strictSame(patchedSpec({ volumes }, { volumes: [patch] }), {
      volumes: [{ name: 'v', configMap: { name: 'c' } }, { name: 'w' }],
    })
  },
)

void t.test('$setElementOrder orders a list, with and without changes to it', async (t) => {
  const containers = [{ name: 'a' }, { name: 'b' }, { name: 'c' }]
  const order = { '$setElementOrder/containers': [{ name: 'd' }, { name: 'c' }, { name: 'a' }] }
  t.strictSame(
    patchedSpec(
      { containers },
      { ...order, containers: [{ name: 'd' }, { name: 'c', image: 'i' }] },
    ),
    { containers: [{ name: 'd' }, { name: 'b' }, { name: 'c', image: 'i' }, { name: 'a' }] },
  )
  t.strictSame(patchedSpec({ containers }, order), {
    containers: [{ name: 'b' }, { name: 'c' }, { name: 'a' }],
  })
})

void t.test('$deleteFromPrimitiveList deletes values', async (t) => {
  const metadata = { finalizers: ['x', 'y', 'z'] }
  const patch = {
    metadata: {
      '$deleteFromPrimitiveList/finalizers': ['x'],
      '$setElementOrder/finalizers': ['z', 'y', 'w'],
      finalizers: ['w'],
    },
  }
  t.strictSame(strategicMergePatch(pod, { metadata }, patch), {
    metadata: { finalizers: ['z', 'y', 'w'] },
  })
})

void t.test('objects that a patch creates have no directives or nulls', async (t) => {
  const volumes = [
    { name: 'v', $retainKeys: ['name', 'emptyDir'], emptyDir: { medium: null } },
    { name: 'w', $patch: 'delete' },
  ]
  t.strictSame(patchedSpec({}, { volumes, '$setElementOrder/volumes': [{ name: 'v' }] }), {
    volumes: [{ name: 'v', emptyDir: {} }],
  })
})

void t.test('invalid patches are bad requests', async (t) => {
  let deep: Json = 1
  for (let level = 0; level < 5000; level++) deep = { deep }
  const spec = { containers: [{ name: 'a' }] }
  for (const patch of [
    { containers: [{ image: 'without name' }] },
    { containers: ['a'] },
    { containers: [{ $patch: 'delete' }] },
    { containers: [{ name: 'a', $patch: 'mend' }] },
    { nodeSelector: {}, $patch: 'merge' },
    { $retainKeys: 'containers' },
    { '$deleteFromPrimitiveList/x': 'x' },
    { '$setElementOrder/containers': { name: 'a' } },
    { deep },
  ])
    t.match(failure(() => patchedSpec(spec, patch)).status, { code: 400 })
  for (const patch of [[], null, 'x'])
    t.match(failure(() => strategicMergePatch(pod, {}, patch)).status, { code: 400 })
})

void t.test('a list whose elements lack the merge key fails', async (t) => {
  const { status } = failure(() =>
    patchedSpec({ containers: [{ image: 'i' }] }, { containers: [{ name: 'a' }] }),
  )
  t.match(status, { code: 400, message: /merge key: name/ })
})

void t.test('lists of lists are refused as the server refuses them', async (t) => {
  const patch = { containers: [[{ name: 'a' }]] }
  t.match(failure(() => patchedSpec({ containers: [] }, patch)).status, {
    code: 422,
    reason: 'Invalid',
  })
})

void t.test('a patch leaves the document as it was', async (t) => {
  const spec = {
    containers: [{ name: 'a', env: [{ name: 'X', value: '1' }] }],
    volumes: [{ name: 'v' }],
  }
  const before = structuredClone(spec)
  patchedSpec(spec, {
    containers: [{ name: 'a', env: [{ name: 'X', value: '2' }] }],
    volumes: [{ name: 'v', $patch: 'delete' }],
  })
  t.strictSame(spec, before)
})
