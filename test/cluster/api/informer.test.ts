import t from 'tap'
import { apiInformer } from '../../../src/cluster/api/informer.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { configMaps } from '../../kit/cloud.ts'
import { startTestCluster, type TestCluster } from '../../kit/cluster-api.ts'
import { Condition } from '../../kit/condition.ts'

t.setTimeout(300_000)

const path = '/api/v1/configmaps'
const isWatch = ({ path: seen }: { path: string }): boolean => seen === path

const configMap = (name: string, value: string): JsonObject => ({
  metadata: { name, namespace: 'default' },
  data: { value },
})

const valueOf = (object: JsonObject): string => (object['data'] as { value: string }).value

function follow(t: Tap, { api }: TestCluster) {
  const seen = new Condition()
  const changes: string[] = []
  const followed = apiInformer<string>(api, {
    path,
    transform: valueOf,
    onChange: (key, now, before) => {
      changes.push(`${key} ${before ?? 'none'} ${now ?? 'none'}`)
      seen.changed()
    },
  })
  t.teardown(() => followed[Symbol.asyncDispose]())
  return { followed, seen, changes }
}

type Tap = Parameters<typeof startTestCluster>[0]

void t.test('a collection is listed in pages, then watched', async (t) => {
  const cluster = await startTestCluster(t)
  const { sandbox } = cluster
  for (let i = 0; i < 1203; i++) sandbox.create(configMaps, configMap(`c-${i}`, 'a'))
  const { followed, seen, changes } = follow(t, cluster)
  await followed.listed
  t.equal(followed.items.size, 1203)
  t.equal(sandbox.requests.filter(({ query }) => query.get('limit') === '500').length, 3)
  await sandbox.untilWatches(1)
  changes.length = 0
  sandbox.update(configMaps, configMap('c-7', 'b'))
  sandbox.create(configMaps, configMap('new', 'n'))
  sandbox.delete(configMaps, 'c-8', 'default')
  await seen.until(() => changes.length === 3)
  t.strictSame(changes, ['default/c-7 a b', 'default/new none n', 'default/c-8 a none'])
  t.strictSame([...followed.items].length, 1203)
})

void t.test('an expired version causes a list, which reports deletions', async (t) => {
  const cluster = await startTestCluster(t)
  const { sandbox } = cluster
  sandbox.create(configMaps, configMap('goes', 'a'))
  sandbox.create(configMaps, configMap('stays', 'a'))
  const { followed, seen, changes } = follow(t, cluster)
  await followed.listed
  await sandbox.untilWatches(1)
  const down = await sandbox.faults.refuse()
  sandbox.delete(configMaps, 'goes', 'default')
  sandbox.update(configMaps, configMap('stays', 'b'))
  sandbox.compact()
  await down[Symbol.asyncDispose]()
  await seen.until(() => !followed.items.has('default/goes'))
  await seen.until(() => followed.items.get('default/stays') === 'b')
  t.equal(followed.lists, 2)
  t.ok(changes.includes('default/goes a none'))
  t.ok(sandbox.requests.some(isWatch))
})
