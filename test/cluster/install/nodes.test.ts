import t from 'tap'
import { nodeInstallers } from '../../../src/cluster/install/nodes.ts'
import type { Json, JsonObject } from '../../../src/api/kube/json.ts'
import { listAt, objectAt, valueAt } from '../../../src/api/kube/json-at.ts'

const printed = JSON.parse(
  JSON.stringify(nodeInstallers({ namespace: 'kube-system', image: 'hub:1' })),
) as JsonObject[]

const specOf = (set: JsonObject): JsonObject => objectAt(set, 'spec', 'template', 'spec')
const containersOf = (set: JsonObject): readonly Json[] => [
  ...listAt(specOf(set), 'initContainers'),
  ...listAt(specOf(set), 'containers'),
]

void t.test('only the installer gets --dummy-if-ip', (t) => {
  const installation = { namespace: 'kube-system', image: 'hub:1', dummyAddress: 'fd00::2:1' }
  const [installer, remover] = nodeInstallers(installation).map((set) => JSON.stringify(set))
  t.match(installer, '"--dummy-if-ip=fd00::2:1"')
  t.notMatch(remover, '--dummy-if-ip')
  t.end()
})

void t.test('installers have no token, and of root’s rights those over files alone', (t) => {
  for (const set of printed) {
    t.equal(specOf(set)['automountServiceAccountToken'], false)
    t.equal(specOf(set)['hostPID'], undefined)
    for (const container of containersOf(set)) {
      t.match(valueAt(container, 'securityContext'), {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
      const added = listAt(container, 'securityContext', 'capabilities', 'add')
      const mayWriteHost = listAt(container, 'volumeMounts').length > 0
      t.strictSame(added, mayWriteHost ? ['CHOWN', 'DAC_OVERRIDE', 'FOWNER'] : [])
    }
  }
  t.end()
})
