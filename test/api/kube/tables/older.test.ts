import t from 'tap'
import type { Json, JsonObject } from '../../../../src/api/kube/json.ts'
import { columnsOfBuiltin } from '../../../../src/api/kube/tables/columns.ts'

const core = (resource: string) => ({ group: '', version: 'v1', resource })

const row = (resource: string, minor: number | undefined, object: JsonObject): [string, Json][] =>
  (columnsOfBuiltin(core(resource), minor) ?? []).map(({ name, cell }) => [name, cell(object)])

void t.test('columns are those of the version of the API server', async (t) => {
  const account = { metadata: { name: 'robot' }, secrets: [{ name: 'a' }] }
  const namesIn = (minor?: number): string[] =>
    row('serviceaccounts', minor, account).map(([name]) => name)
  t.strictSame(namesIn(34), ['Name', 'Secrets', 'Age'])
  t.strictSame(row('serviceaccounts', 34, account)[1], ['Secrets', 1])
  t.strictSame(namesIn(35), ['Name', 'Age'])
  t.strictSame(namesIn(), ['Name', 'Age'], 'of an unknown version the newest')
  const kernel = (minor: number): Json =>
    new Map(
      row('nodes', minor, {
        metadata: { name: 'edge-1' },
        status: { nodeInfo: { kernelVersion: '6.1', architecture: 'arm64' } },
      }),
    ).get('Kernel-Version') ?? null
  t.strictSame([kernel(35), kernel(36)], ['6.1', '6.1 (arm64)'])
  t.strictSame(
    columnsOfBuiltin(core('resourcequotas'), 32)?.map(({ name }) => name),
    ['Name', 'Age', 'Request', 'Limit'],
  )
})
