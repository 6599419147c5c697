import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { Client, metadataAccepts, tableAccept, type Watching } from '../kit/client.ts'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { administrator, noControlPlane, startControlPlane } from '../kit/control-plane.ts'
import { startTestHub } from '../kit/hub.ts'
import { until } from '../kit/until.ts'
import { link } from '../kit/wire/link.ts'

t.setTimeout(240_000)

const kubectl = findBinaries(['kubectl'])
const skip = noControlPlane() ?? ('missing' in kubectl ? kubectl.missing : false)

const path = '/api/v1/namespaces/default/configmaps'

const clients = {
  'metadata in JSON': metadataAccepts('json'),
  'metadata in protobuf': metadataAccepts('protobuf'),
  Tables: { list: tableAccept, watch: tableAccept },
}

void t.test(
  'watches of metadata and Tables through a hub are those of a real API server, through a cut',
  { skip, timeout: 240_000 },
  async (t) => {
    if ('missing' in kubectl) return
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
    t.equal(await hub.metric('nodehub_cacher_upstream_watches'), 3, 'one for each representation')
    t.equal(await hub.metric('nodehub_cacher_watchers'), 9)
    const shown = spawn(
      kubectl.paths.kubectl,
      [`--server=${hub.url}`, 'get', 'configmaps', '--namespace=default', '--watch-only'],
      { env: { HOME: plane.workspace.path }, stdio: ['ignore', 'pipe', 'pipe'] },
    )
    t.teardown(() => shown.kill())
    let text = ''
    shown.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
    await hub.reaches('nodehub_cacher_watchers', 10)
    const create = async (name: string): Promise<void> => {
      await plane.admin.post(path, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } })
    }
    const nextIsSame = async (): Promise<void> => {
      for (const { name, expected, others } of watches) {
        const event = await expected.nextChange()
        for (const other of others) {
          const got = await other.nextChange()
          t.equal(withoutAge(got?.frame), withoutAge(event?.frame), name)
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
    const isShown = (): boolean => text.includes('after-2')
    await until('kubectl to show the last', isShown, { describe: () => text })
    const names = text.split('\n').flatMap((line) => line.split(' ')[0] || [])
    t.strictSame(names, ['NAME', 'a', 'b', 'a', 'after-1', 'b', 'after-2'])
    shown.kill()
    await once(shown, 'close')
  },
)

/** The age in a row is as old as the answer. */
const withoutAge = (frame: Buffer | undefined): string | undefined =>
  frame?.toString('latin1').replace(/("cells":\["[^"]*",\d+,)"\d+s"/, '$1""')
