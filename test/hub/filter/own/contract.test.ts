import t from 'tap'
import { loadFilters } from '../../../../src/hub/filter/own/load.ts'
import type { JsonObject } from '../../../../src/api/kube/json.ts'
import { filterContract } from '../../../contracts/filters.ts'
import { FilterFolder } from '../../../kit/own-filter.ts'

const declared = `
- name: withholding
  components: [kube-proxy]
  resources: [services]
  when: has(object.spec) && has(object.spec.ports) && object.spec.ports.exists(p, has(p.port) && p.port == 80)
  then: withhold
- name: editing
  components: [kube-proxy]
  resources: [services]
  when: has(object.spec) && has(object.spec.type) && object.spec.type == 'NodePort' && has(object.metadata) && has(object.metadata.labels)
  then:
    - set: metadata.labels['example.com/of']
      expression: "'on-' + node.name"
    - remove: spec.ports[*].nodePort
    - set: spec.externalTrafficPolicy
      value: Local
`

const service: JsonObject = {
  kind: 'Service',
  apiVersion: 'v1',
  metadata: {
    name: 'web',
    namespace: 'default',
    uid: 'a6e6d5a5-0a0e-4c0e-8a6a-4b8f8e5a0c11',
    resourceVersion: '4711',
    creationTimestamp: '2026-11-21T10:16:51Z',
    labels: { app: 'web' },
  },
  spec: {
    ports: [
      { name: 'http', protocol: 'TCP', port: 80, targetPort: 'web', nodePort: 30_080 },
      { name: 'https', protocol: 'TCP', port: 443, targetPort: 6443 },
    ],
    clusterIP: '10.96.0.1',
    type: 'NodePort',
    sessionAffinity: 'None',
  },
  status: { loadBalancer: {} },
}

const loaded = await loadFilters([new FilterFolder(t).write('f.yaml', declared)], [])
if ('mistakes' in loaded) throw new Error(loaded.mistakes.join('\n'))
const node = { name: 'edge-1', labels: {}, annotations: {} }

/** What the declarations above are to make of the service. */
const shown: Readonly<Record<string, JsonObject | 'withheld'>> = {
  withholding: 'withheld',
  editing: {
    ...service,
    metadata: {
      ...(service['metadata'] as JsonObject),
      labels: { app: 'web', 'example.com/of': 'on-edge-1' },
    },
    spec: {
      ...(service['spec'] as JsonObject),
      externalTrafficPolicy: 'Local',
      ports: [
        { name: 'http', protocol: 'TCP', port: 80, targetPort: 'web' },
        { name: 'https', protocol: 'TCP', port: 443, targetPort: 6443 },
      ],
    },
  },
}

for (const definition of loaded.filters) {
  void t.test(`${definition.name}: what every filter owes`, async (t) => {
    const expected = { object: service, shown: shown[definition.name] ?? {} }
    filterContract(t, definition, { known: { node }, objects: [expected] })
  })
}
