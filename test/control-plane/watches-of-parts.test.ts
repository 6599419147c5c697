import { readFileSync } from 'node:fs'
import t from 'tap'
import { Client, metadataAccepts, type Watching } from '../kit/client.ts'
import { administrator, noControlPlane, startControlPlane } from '../kit/control-plane.ts'
import { startTestHub } from '../kit/hub.ts'
import { link } from '../kit/wire/link.ts'

t.setTimeout(240_000)

const skip = noControlPlane() ?? false

const path = '/api/v1/namespaces/default/configmaps'

const clients = {
  'metadata in JSON': metadataAccepts('json'),
  'metadata in protobuf': metadataAccepts('protobuf'),
}

void t.test(
  'watches of metadata through a hub are those of a real API server, through a cut',
  { skip, timeout: 240_000 },
  async (t) => {
    const plane = await startControlPlane(t)
    const way = await link(t, Number(new URL(plane.url).port))
    const { certificate, key } = plane.credentials(administrator)
    const hub = await startTestHub(t, {
      upstreams: [{ url: `https://127.0.0.1:${way.port}` }],
      flags: [
        `--upstream-ca=${plane.pki.ca.certificate}`,
        `--upstream-client-cert=${certificate}`,
        `--upstream-client-key=${key}`,
      ],
    })
    await hub.online()
    const [ca, cert, ownKey] = [plane.pki.ca.certificate, certificate, key].map((file) =>
      readFileSync(file, 'utf8'),
    )
    const tls = { ca: ca ?? '', cert: cert ?? '', key: ownKey ?? '' }
    const direct = new Client({ url: plane.url, component: 'kubectl', tls })
    const watches = await Promise.all(
      Object.entries(clients).map(async ([name, { list, watch }]) => {
        const through = hub.as('kubectl')
        const open = async (client: Client): Promise<Watching> => {
          const { resourceVersion } = await client.withOptions({ accept: list }).list(path)
          const query = { resourceVersion, allowWatchBookmarks: 'true' }
          return client.withOptions({ accept: watch }).watch(path, query)
        }
        return {
          name,
          expected: await open(direct),
          others: [await open(through), await open(through), await open(through)],
        }
      }),
    )
    t.equal(await hub.metric('nodehub_cacher_upstream_watches'), 2, 'one for each representation')
    t.equal(await hub.metric('nodehub_cacher_watchers'), 6)
    const create = async (name: string): Promise<void> => {
      await plane.admin.post(path, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } })
    }
    const nextIsSame = async (): Promise<void> => {
      for (const { name, expected, others } of watches) {
        const event = await expected.nextChange()
        for (const other of others) {
          const got = await other.nextChange()
          t.equal(got?.frame.toString('latin1'), event?.frame.toString('latin1'), name)
        }
      }
    }
    await create('a')
    await nextIsSame()
    await create('b')
    await nextIsSame()
    for (const round of [1, 2]) {
      way.down()
      await hub.offline()
      await direct.send(`${path}/${round === 1 ? 'a' : 'b'}`, { method: 'DELETE' })
      await create(`after-${round}`)
      way.up()
      await hub.online()
      await nextIsSame()
      await nextIsSame()
    }
  },
)
