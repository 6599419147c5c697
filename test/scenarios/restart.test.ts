import t from 'tap'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { pods, podsOfNode, secrets } from '../kit/cloud.ts'
import type { Client } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import {
  startOnlineHub,
  goOnline,
  startChildHub,
  startCloud,
  startTestHub,
  TestHub,
  type CloudServer,
} from '../kit/hub.ts'

const secret = '/api/v1/namespaces/default/secrets/password'
const plaintext = 'the-password-of-the-plant'
const asked = [podsOfNode, '/api/v1/nodes/edge-1', secret, '/api/v1/secrets', '/api', '/api/v1']

function fill(cloud: CloudServer): void {
  cloud.addPods('a', 'b')
  cloud.sandbox.create(secrets, {
    metadata: { name: 'password', namespace: 'default' },
    data: { password: Buffer.from(plaintext).toString('base64') },
  })
}

const read = async (client: Client): Promise<readonly string[]> => {
  const bodies: string[] = []
  for (const path of asked) {
    const { status, body } = await client.get(path)
    bodies.push(`${path} ${status} ${body.toString('latin1')}`)
  }
  return bodies
}

function* filesIn(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) yield* filesIn(path)
    yield path
  }
}

void t.test('another address of the API server takes nothing away', async (t) => {
  const cloud = await startCloud(t)
  fill(cloud)
  const first = await startTestHub(t, { upstreams: [cloud] })
  const before = await read(first.as('kubelet'))
  await first.stop()
  const gone = { url: `http://127.0.0.1:${await freePort()}` }
  const second = new TestHub(first.rootDir, { upstreams: [gone] })
  t.teardown(() => second.stop())
  await second.start()
  t.strictSame(await read(second.as('kubelet')), before)
})

void t.test('a killed hub gives the same answers, and brings no deleted object back', async (t) => {
  const cloud = await startCloud(t)
  fill(cloud)
  const hub = await startChildHub(t, { upstreams: [cloud] })
  await hub.online()
  const before = await read(hub.as('kubelet'))
  const list = await hub.as('kubelet').list(podsOfNode)
  for (let round = 0; round < 3; round++) {
    await hub.crash()
    await cloud.unplug()
    await hub.start()
    t.strictSame(await read(hub.as('kubelet')), before)
    await goOnline(cloud, hub)
  }
  const { resourceVersion } = list
  const watch = await hub.as('kubelet').watch(podsOfNode, { resourceVersion })
  cloud.sandbox.delete(pods, 'a', 'default', { gracePeriodSeconds: 0 })
  t.equal((await watch.next())?.type, 'DELETED')
  // The very moment a client has heard of it.
  await hub.crash()
  await cloud.unplug()
  await hub.start()
  t.strictSame((await hub.as('kubelet').list(podsOfNode)).names, ['default/b'])
})

void t.test('secrets are in no file that others can read, nor in clear in any', async (t) => {
  const before = process.umask(0)
  t.teardown(() => process.umask(before))
  const cloud = await startCloud(t, { tls: true })
  fill(cloud)
  const hub = await startOnlineHub(t, { upstreams: [cloud], ownCertificates: true })
  const token = cloud.sandbox.token('somebody')
  for (const encoding of ['json', 'protobuf'] as const) {
    await read(hub.as('kubelet', { encoding }))
    await read(hub.as('kubelet', { encoding, token }))
  }
  const state = join(hub.rootDir, 'state')
  const check = (when: string): void => {
    for (const path of [state, ...filesIn(state)]) {
      const stat = statSync(path)
      const mode = (stat.mode & 0o777).toString(8)
      t.equal(mode, stat.isDirectory() ? '700' : '600', `${path} ${when}`)
      if (!stat.isFile()) continue
      const bytes = readFileSync(path)
      for (const hidden of [plaintext, Buffer.from(plaintext).toString('base64'), token]) {
        t.equal(bytes.indexOf(hidden), -1, `${path} ${when}`)
      }
    }
  }
  check('while it runs')
  await hub.stop()
  check('when it has stopped')
  t.notMatch(hub.lines.join(''), token)
  t.notMatch(hub.lines.join(''), plaintext)
})
