import t, { type Test } from 'tap'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isExpectedFault } from '../../src/base/expected-fault.ts'
import { podsOfNode } from '../kit/cloud.ts'
import { logFilesIn } from '../kit/log-on-disk.ts'
import { onlineNode } from '../kit/hub.ts'

/** A hub that was stopped, with the cache of a former release in its folder. */
async function stoppedHub(t: Test) {
  const { cloud, hub } = await onlineNode(t, 'a')
  const { cachePath } = hub.config
  await hub.stop()
  for (const file of logFilesIn(cachePath)) rmSync(file)
  for (const name of ['objects.db', 'objects.db-wal']) writeFileSync(join(cachePath, name), name)
  return {
    cloud,
    hub,
    names: () => readdirSync(cachePath),
  }
}

void t.test('a cache of 0.2.0 is set aside where an API server answers', async (t) => {
  const { hub, names } = await stoppedHub(t)
  await hub.start()
  t.match(hub.lines.join(''), 'the cache of a release before 0.3.0 is set aside')
  t.strictSame(
    names().filter((name) => name.startsWith('objects')),
    ['objects.db-wal.former', 'objects.db.former'],
  )
  t.strictSame((await hub.as('kubelet').list(podsOfNode)).names, ['default/a'])
})

void t.test('where none answers each start is refused, and leaves no file', async (t) => {
  const { cloud, hub, names } = await stoppedHub(t)
  await cloud.unplug()
  for (const _ of [1, 2]) {
    const refused: unknown = await hub.start().catch((cause: unknown) => cause)
    t.match(refused, { message: /release before 0\.3\.0.*start the former release/ })
    t.ok(isExpectedFault(refused), 'it is logged as a sentence, without a stack')
    t.strictSame(names(), ['lock.db', 'objects.db', 'objects.db-wal'])
  }
})
