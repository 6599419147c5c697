import t from 'tap'
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { backUp } from '../../src/node/backup/backup.ts'
import { isRestorePending } from '../../src/node/backup/pending-restore.ts'
import { restore } from '../../src/node/backup/restore.ts'
import { nodeName, podsOfNode, secrets } from '../kit/cloud.ts'
import { startHubProcess } from '../kit/hub-process.ts'
import { startCloud, startTestHub } from '../kit/hub.ts'

t.setTimeout(300_000)

const secret = '/api/v1/namespaces/default/secrets/password'

const stateOf = (rootDir: string) => ({
  rootDir,
  cachePath: join(rootDir, 'cache'),
  node: nodeName,
})

/** Versions of collections, and when an API server confirmed them. */
function heads(rootDir: string): unknown {
  using db = new DatabaseSync(join(rootDir, 'cache', 'objects.db'), { readOnly: true })
  return db
    .prepare(
      'SELECT resource, version, confirmed_at FROM collection JOIN scope ON scope = scope.id',
    )
    .all()
}

void t.test(
  'a backup of a running hub is served offline as old as it is, secrets too',
  async (t) => {
    const cloud = await startCloud(t)
    cloud.addPods('a')
    cloud.sandbox.create(secrets, {
      metadata: { name: 'password', namespace: 'default' },
      data: { password: 'c2VjcmV0' },
    })
    const hub = await startTestHub(t, { upstreams: [cloud] })
    const read = async (): Promise<readonly string[]> => {
      const kubelet = hub.as('kubelet')
      const answers = [await kubelet.get(podsOfNode), await kubelet.get(secret)]
      return answers.map(({ status, body }) => `${status} ${String(body)}`)
    }
    const before = await read()
    const { rootDir } = hub.config
    const archive = join(hub.rootDir, 'backup.tar')
    await backUp(archive, { ...stateOf(rootDir), withoutKey: false })
    const confirmed = heads(rootDir)
    t.notMatch(readFileSync(archive).toString('latin1'), 'c2VjcmV0', 'what is sealed stays sealed')

    cloud.addPods('b')
    await hub.as('kubelet').get(podsOfNode)
    await cloud.unplug()
    await hub.stop()
    rmSync(rootDir, { recursive: true })
    await restore(archive, { ...stateOf(rootDir), force: false, replace: false })
    t.strictSame(heads(rootDir), confirmed, 'ages are those of the backup')
    await hub.start()
    t.strictSame(await read(), before)
  },
)

void t.test('a running hub keeps its state, and the next start finishes a restore', async (t) => {
  const cloud = await startCloud(t)
  const first = await startHubProcess(t, { upstreams: [cloud] })
  const rootDir = join(first.rootDir, 'state')
  const archive = join(first.rootDir, 'backup.tar')
  await backUp(archive, { ...stateOf(rootDir), withoutKey: false })
  const key = readFileSync(join(rootDir, 'seal.key'))
  const replacing = { ...stateOf(rootDir), force: false, replace: true }
  await t.rejects(restore(archive, replacing), {
    message: `another hub, process ${first.pid}, uses`,
  })
  first.kill()
  await first.ended()
  rmSync(join(rootDir, 'seal.key'))
  const script = join(import.meta.dirname, '..', 'node', 'backup', 'killed-restore.ts')
  // The first change after the decision, which comes when the plan is there.
  for (let change = 0; !spawnedUntilDecided(script, change, archive, rootDir); change++);
  t.notOk(readKey(rootDir)?.equals(key), 'the restore is decided, and not in place')
  const next = await startHubProcess(t, { upstreams: [cloud] }, first.rootDir)
  t.strictSame(readKey(rootDir), key)
  t.equal((await next.as('kubelet').get(podsOfNode)).status, 200)
})

function spawnedUntilDecided(script: string, change: number, archive: string, rootDir: string) {
  spawnSync(process.execPath, [script, String(change), archive, rootDir])
  return isRestorePending(rootDir)
}

function readKey(rootDir: string): Buffer | undefined {
  try {
    return readFileSync(join(rootDir, 'seal.key'))
  } catch {
    return undefined
  }
}
