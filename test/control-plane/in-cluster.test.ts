import { execFileSync } from 'node:child_process'
import t, { type Test } from 'tap'
import { writeProgramImage } from '../kit/cluster/oci-image.ts'
import type { ControlPlane } from '../kit/control-plane.ts'
import { withDummies } from '../kit/own-network.ts'
import { until } from '../kit/until.ts'
import { link } from '../kit/wire/link.ts'
import { noBareNode, openBareNode } from './bare-node.ts'
import { joinFlags, startJoinablePlane } from './joinable-plane.ts'
import { compileProgram } from './programs.ts'
import { startReplicas } from './replica-set.ts'
import { nodeReady, podRunning } from './seen.ts'

t.setTimeout(600_000)

const nodeName = 'edge-1'
const namespace = '/api/v1/namespaces/default'
const words = `${namespace}/configmaps/words`
const image = 'test.local/in-cluster:1'
const dummy = 'hub-dummy0'

/** What the program in the pod says that it gets. */
interface Said {
  readonly host: string
  readonly configMaps?: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly error?: string
}

/** One ConfigMap, and the right of pods of the namespace to read all of them. */
async function makeReadable({ admin }: ControlPlane): Promise<void> {
  const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/default'
  const apiGroup = 'rbac.authorization.k8s.io'
  const metadata = { name: 'readers' }
  const rule = { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }
  const made = [
    await admin.post(`${namespace}/configmaps`, { metadata: { name: 'words' }, data: { a: '1' } }),
    await admin.post(`${rbac}/roles`, { metadata, rules: [rule] }),
    await admin.post(`${rbac}/rolebindings`, {
      metadata,
      roleRef: { apiGroup, kind: 'Role', name: 'readers' },
      subjects: [{ kind: 'ServiceAccount', name: 'default', namespace: 'default' }],
    }),
  ]
  for (const { status, body } of made) if (status !== 201) throw new Error(body.toString())
}

/** Has the service account's token, as every pod that does not say otherwise. */
const client = {
  metadata: { name: 'client' },
  spec: {
    nodeName,
    terminationGracePeriodSeconds: 1,
    tolerations: [{ operator: 'Exists' }],
    containers: [{ name: 'main', image, imagePullPolicy: 'Never' }],
  },
}

void t.test(
  "a pod with client-go's in-cluster configuration works through the hub, online and offline, also after a reboot",
  { skip: noBareNode(), timeout: 600_000 },
  async (t) => {
    const plane = await startJoinablePlane(t)
    const compiled = await compileProgram(plane.workspace, 'in-cluster')
    // The plan of a skipped test.
    if ('missing' in compiled) return t.plan(0, compiled.missing)
    const archive = plane.workspace.file('in-cluster.tar')
    writeProgramImage(image, compiled.program, archive)
    const { admin } = plane
    await makeReadable(plane)
    await startReplicas(t, plane)
    withDummies(t)
    const way = await link(t, Number(new URL(plane.url).port))
    const node = await openBareNode(t, plane, { name: nodeName, port: way.port, images: [archive] })
    node.addPodNetwork()
    const { code, err } = await node.run(
      'join',
      '--nodepool-name=kiosks',
      '--host-network-pool=false',
      `--server-addr=https://127.0.0.1:${way.port}`,
      ...joinFlags(plane),
      '--image=nodehub:test',
      '--dummy-interface',
    )
    t.equal(code, 0, err)
    node.makeDummyInterface()
    const hub = await node.startHub('--cache-components=kubelet,in-cluster')
    const kubelet = await node.startKubelet()
    await nodeReady(admin, nodeName)
    const ready = async (): Promise<string> =>
      (await node.network.fetch(`${node.opsUrl}/readyz?verbose`)) ?? ''
    await until('pods to be led to the hub', async () =>
      (await ready()).includes('[+]hub-address pods are led to 169.254.2.1:10268'),
    )
    await admin.post(`${namespace}/pods`, client)
    await podRunning(admin, 'client')

    const ask = async (path: string): Promise<Said | undefined> => {
      const address = (await kubelet.containers()).get('client')?.address()
      const said = address && (await node.network.fetch(`http://${address}:8080${path}`))
      return said === undefined || said === '' ? undefined : (JSON.parse(said) as Said)
    }
    /** That it gets `words` with this value, by a read and by its informer. */
    const gets = async (t: Test, value: string): Promise<void> => {
      for (const path of ['/get?name=words', '/informed']) {
        let last: Said | undefined
        const said = await until(
          `${value} of ${path}`,
          async () => {
            last = await ask(path)
            return last?.configMaps?.['words']?.['a'] === value && last
          },
          { describe: () => last },
        )
        t.equal(said.host, 'https://169.254.2.1:10268')
      }
    }

    await t.test('online', (t) => gets(t, '1'))

    await t.test('offline', async (t) => {
      way.down()
      await until('the hub to be offline', async () => (await ready()).includes('[ ]cloud offline'))
      await gets(t, '1')
    })

    await t.test('after a reboot without the link', async (t) => {
      const before = (await kubelet.containers()).get('client')?.id
      await hub.kill()
      await kubelet.powerCut()
      execFileSync(...node.network.inside('ip', ['link', 'delete', 'dev', dummy]))
      node.makeDummyInterface()
      await Promise.all([hub.start(), kubelet.daemon.start()])
      await gets(t, '1')
      t.not((await kubelet.containers()).get('client')?.id, before, 'in another container')
      t.match(await ready(), '[ ]cloud offline')
    })

    await t.test('when the link is back', async (t) => {
      way.up()
      const patch = JSON.stringify({ data: { a: '2' } })
      await admin.send('PATCH', words, patch, 'application/merge-patch+json')
      await gets(t, '2')
    })
  },
)
