import t, { type Test } from 'tap'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import pino from 'pino'
import type { ApiObject } from '../../../src/api/kube/object.ts'
import { resourceVersion } from '../../../src/api/kube/resource-version.ts'
import { Connections } from '../../../src/http/client/connections.ts'
import { KnownCluster } from '../../../src/hub/upstream/known-cluster.ts'
import { portOf } from '../../kit/wire/listening.ts'

/** An API server at version 100, and a store at `stored`, that is asked by a probe. */
async function probed(
  stored: { at: string },
  whileAsked: () => void,
  status = 200,
): Promise<{ readonly asked: number; readonly drops: number }> {
  const found = { asked: 0, drops: 0 }
  const server = createServer((_, response) => {
    found.asked += 1
    whileAsked()
    response.writeHead(status, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify({ metadata: { resourceVersion: '100' }, items: [] }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  await using connections = new Connections({ files: [] })
  const known = new KnownCluster(connections, pino({ enabled: false }))
  const store = {
    get: () => undefined,
    put: () => Promise.resolve(),
    newestVersion: () => resourceVersion(stored.at),
    drop: () => {
      found.drops += 1
      return Promise.resolve()
    },
  }
  known.keepIn(store, () => undefined)
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const probe = known.comparing(
    () => Promise.resolve(),
    () => true,
  )
  for (let round = 0; round < 2; round += 1) await probe(origin, 1_000)
  server.close()
  return found
}

void t.test('a cluster that is behind what is stored was restored', async (t) => {
  t.match(await probed({ at: '101' }, () => undefined), { drops: 1 })
  t.match(await probed({ at: '100' }, () => undefined), { drops: 0 })
})

void t.test('but not where the store went on while the API server answered', async (t) => {
  const stored = { at: '100' }
  const advance = (): void => void (stored.at = '105')
  t.match(await probed(stored, advance), { drops: 0 })
})

void t.test('an API server that is too busy to say is compared later', async (t) => {
  for (const status of [429, 401, 500])
    t.match(await probed({ at: '101' }, () => undefined, status), { asked: 2, drops: 0 })
  t.match(await probed({ at: '101' }, () => undefined, 403), { asked: 1, drops: 0 })
})

void t.test('an API server that was removed does not speak for its cluster', async (t) => {
  await using connections = new Connections({ files: [] })
  const known = new KnownCluster(connections, pino({ enabled: false }))
  const [former, next] = [await clusterOf(t, 'a'), await clusterOf(t, 'b')]
  const present = new Set([former, next])
  let stored: ApiObject | undefined
  let drops = 0
  const store = {
    get: () =>
      stored && {
        gvk: { group: '', version: '', kind: '' },
        object: stored,
        confirmedVersion: '',
        confirmedAt: 0,
      },
    put: async (_key: object, _gvk: object, object: ApiObject) => void (stored = object),
    newestVersion: () => undefined,
    drop: async () => void (drops += 1),
  }
  known.keepIn(store, () => undefined)
  const probe = known.comparing(
    () => Promise.resolve(),
    (origin) => present.has(origin),
  )
  await probe(former, 1_000)
  await t.rejects(probe(next, 1_000), /is of another cluster than the other API servers/)
  present.delete(former)
  known.offline()
  // Its last probe ends late.
  await probe(former, 1_000)
  await probe(next, 1_000)
  t.equal(drops, 1, 'the records of the former cluster')
})

void t.test('a disk that takes no writes keeps no API server out', async (t) => {
  await using connections = new Connections({ files: [] })
  const known = new KnownCluster(connections, pino({ enabled: false }))
  const [first, second] = [await clusterOf(t, 'a'), await clusterOf(t, 'b')]
  const hanging = Promise.withResolvers<void>()
  const answers = [() => Promise.reject(new Error('ENOSPC')), () => hanging.promise]
  let [drops, dropped] = [0, 0]
  known.keepIn(
    {
      get: () => undefined,
      put: () => answers.shift()?.() ?? Promise.resolve(),
      newestVersion: () => undefined,
      drop: () => {
        drops += 1
        return Promise.reject(new Error('ENOSPC'))
      },
    },
    () => void (dropped += 1),
  )
  const probe = known.comparing(
    () => Promise.resolve(),
    () => true,
  )
  await probe(first, 1_000)
  t.equal(answers.length, 1)
  await probe(first, 1_000)
  t.equal(answers.length, 0, 'it is tried again')
  await t.rejects(probe(second, 1_000), /is of another cluster/, 'though no UID is stored')
  known.offline()
  await probe(second, 1_000)
  t.strictSame([drops, dropped], [1, 1], 'from memory it is gone')
  hanging.resolve()
})

/** The address of an API server of a cluster with that uid. */
async function clusterOf(t: Test, uid: string): Promise<string> {
  const body = JSON.stringify({
    metadata: { resourceVersion: '100' },
    items: [{ metadata: { uid } }],
  })
  const server = createServer((_, response) => {
    response.writeHead(200, { 'Content-Type': 'application/json' })
    response.end(body)
  })
  return `http://127.0.0.1:${await portOf(t, server)}`
}
