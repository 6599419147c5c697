import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Client } from '../kit/client.ts'
import { type HubProcess } from '../kit/cluster/hub-process.ts'
import {
  administrator,
  noControlPlane,
  nodeSubject,
  startControlPlane,
  type ControlPlane,
} from '../kit/control-plane.ts'
import { noKubelet } from '../kit/kubelet.ts'
import { until } from '../kit/until.ts'
import { comparedKubectls, discoversSince } from './kubectl/find.ts'
import { withoutStaleness } from './kubectl/mask.ts'
import { type Said, Session } from './kubectl/session.ts'
import { type Heard, talk, talker, talkerName } from './kubectl/story.ts'
import { documentedLines } from '../documented-commands.ts'
import { administratorToken } from './account-token.ts'
import { busyboxPod } from './pod.ts'
import { documentsRecorded, readsSchemasSoon } from './recorded-documents.ts'
import { nodeReady, objectThat, podRunning } from './seen.ts'
import { nodeName, startNodeHub, startNodeKubelet } from './node.ts'

t.setTimeout(600_000)

const kubectls = comparedKubectls(discoversSince)
const skip =
  noControlPlane() ??
  noKubelet() ??
  (kubectls.length === 0 ? `no kubectl since ${discoversSince}` : false)
const crasherName = 'crasher'
const stumblerName = 'stumbler'

/** What a technician asks for, that says the same before and after the cut. */
const commands = (manifest: string, customManifest: string): readonly (readonly string[])[] => [
  ['get', 'nodes', '-o', 'wide'],
  ['get', 'pods', talkerName, '-o', 'wide'],
  ['get', 'pod', talkerName, '-o', 'yaml'],
  ['get', 'pod', talkerName, '-o', 'jsonpath={.spec.nodeName}'],
  ['describe', 'pod', talkerName],
  ['get', '--raw', '/version'],
  ['get', '--raw', `/api/v1/namespaces/default/pods/${talkerName}`],
  ['api-resources', '--sort-by=name'],
  ['api-versions'],
  ['explain', 'pod.spec.containers'],
  ['explain', 'deployment.spec', '--recursive'],
  ['explain', 'role.rules', '--recursive'],
  ['explain', 'storageclass.provisioner'],
  ['explain', 'horizontalpodautoscaler.spec.metrics', '--recursive'],
  ['explain', 'certificatesigningrequest.spec.signerName', '--output=plaintext-openapiv2'],
  ['explain', 'presses.spec.force'],
  ['explain', 'presses', '--recursive'],
  ['create', 'configmap', 'example', '--from-literal=a=b', '--dry-run=client', '-o', 'yaml'],
  ['apply', '--dry-run=client', '-f', manifest, '-o', 'yaml'],
  ['create', '--dry-run=client', '-f', customManifest, '-o', 'yaml'],
  ['apply', '--dry-run=client', '-f', customManifest, '-o', 'yaml'],
  ['create', 'role', 'reader', '--verb=get', '--resource=pods', '--dry-run=client', '-o', 'yaml'],
  ['__complete', 'get', 'po'],
  ['__complete', 'get', 'press'],
  ['__complete', 'explain', 'storagec'],
  ['__complete', 'get', 'pods', ''],
  ['__complete', 'logs', ''],
]

/** A custom kind with a schema, and an object of it. */
const pressDefinition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'presses.plant.example' },
  spec: {
    group: 'plant.example',
    scope: 'Namespaced',
    names: { kind: 'Press', plural: 'presses', singular: 'press' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  force: { type: 'integer', description: 'How hard it presses, in kilonewtons.' },
                },
              },
            },
          },
        },
      },
    ],
  },
}
const press = {
  apiVersion: 'plant.example/v1',
  kind: 'Press',
  metadata: { name: 'one' },
  spec: { force: 7 },
}

const presses = '/apis/plant.example/v1/namespaces/default/presses'

/** A component of the node that may do everything lists the custom kind. */
async function listPresses({ admin }: ControlPlane, hub: HubProcess): Promise<void> {
  const token = await administratorToken(admin, 'coredns')
  const component = new Client({ url: hub.url, component: 'coredns', token })
  // The API server may not know of its rights yet.
  await until('a list of the custom kind', async () => {
    const { status } = await component.get(presses)
    return status === 200
  })
}

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

/**
 * How a kubelet writes, once it has read the pod's cgroup, a minute after the start and perhaps in
 * the outage, that the pod has no limit; and how before.
 */
const withoutLimit: readonly (readonly [later: RegExp, before: string])[] = [
  [/resources:\n +limits:\n +memory: 9007199254740988Ki\n/, 'resources: {}\n'],
  [/"resources":\{"limits":\{"memory":"9007199254740988Ki"\}\}/, '"resources":{}'],
  [/"f:resources":\{".":\{\},"f:limits":\{".":\{\},"f:memory":\{\}\}\}/, '"f:resources":{}'],
]

/**
 * Without the events, of which the kubelet writes more meanwhile, and the group of resource
 * metrics, which a cluster without metrics-server has not.
 */
const comparable = ({ status, stdout, stderr }: Said): unknown => ({
  status,
  stdout: withoutLimit.reduce(
    (text, [later, before]) => text.replace(later, before),
    stdout.replace(/^Events:[^]*/m, '').replace(/^.*metrics\.k8s\.io.*\n/gm, ''),
  ),
  stderr: withoutStaleness(stderr),
})

/** The kubectl commands that the page for technicians has, for the talker. */
function commandsOnPage(): string[][] {
  const commands = documentedLines()
    .filter(
      ({ page, line }) =>
        page.endsWith('/offline-node.md') && /^kubectl (?!.*custom-col)/.test(line),
    )
    .map(({ line }) => line.replaceAll('POD', talkerName).replaceAll('NAMESPACE', 'default'))
  return commands.map((line) => line.replace('8080:8080', ':8080').split(' ').slice(1))
}

/** What was said, without the warning that it comes from the cache. */
function withoutWarning([step, said]: Heard): Heard {
  const hasWarnings = typeof said === 'object' && said !== null && 'stderr' in said
  if (!hasWarnings) return [step, said]
  return [step, { ...said, stderr: withoutStaleness(String(said.stderr)) }]
}

void t.test(
  'a kubectl new on a node prints the same without an API server as with one',
  { skip, timeout: 600_000 },
  async (t) => {
    const plane = await startControlPlane(t, { controllerManager: true })
    t.equal((await plane.admin.post(definitions, pressDefinition)).status, 201)
    await until('the schema of the custom kind', async () => {
      const { body } = await plane.admin.get('/openapi/v3')
      return body.includes('apis/plant.example/v1')
    })
    const node = nodeSubject(nodeName)
    const hub = await startNodeHub(plane, { flags: [readsSchemasSoon] })
    const onSite = plane.kubeconfig(node, hub.secureUrl, hub.authority)
    await startNodeKubelet(t, plane, hub, { asksWhoMay: true })
    await nodeReady(plane.admin, nodeName)
    const crasher = busyboxPod(crasherName, {
      nodeName,
      command: ['sh', '-c', 'echo last words; exit 1'],
    })
    // Fails once: of one that fails again and again the runtime has forgotten the container before,
    // most of the time.
    const stumbler = busyboxPod(stumblerName, {
      nodeName,
      command: [
        'sh',
        '-c',
        '[ -e /kept/seen ] && exec sleep 3600; touch /kept/seen; echo last words; exit 1',
      ],
      kept: '/kept',
    })
    for (const pod of [talker(nodeName), crasher, stumbler])
      await plane.admin.post('/api/v1/namespaces/default/pods', pod)
    await podRunning(plane.admin, talkerName)
    for (const name of [crasherName, stumblerName])
      await objectThat(
        plane.admin,
        `/api/v1/namespaces/default/pods/${name}`,
        ({ status }) => (status?.containerStatuses?.[0]?.restartCount ?? 0) > 0,
      )
    const manifest = plane.workspace.file('talker.json')
    const typed = { apiVersion: 'v1', kind: 'Pod', ...talker(nodeName) }
    writeFileSync(manifest, JSON.stringify(typed))
    const customManifest = plane.workspace.file('press.json')
    writeFileSync(customManifest, JSON.stringify(press))
    const session = (path: string, kubeconfig: string, side: string): Session => {
      const cacheFolder = plane.workspace.file(side)
      mkdirSync(cacheFolder, { recursive: true })
      return new Session({ kubectl: path, kubeconfig, namespace: 'default', cacheFolder })
    }
    const before = new Map<string, unknown>()
    const talked = new Map<string, unknown>()
    for (const { path, version } of kubectls) {
      const direct = session(path, plane.kubeconfig(administrator), `direct-${version}`)
      for (const args of commands(manifest, customManifest))
        before.set(`${version} ${args.join(' ')}`, comparable(await direct.run(args)))
      await until('two lines of the log', async () => {
        const { stdout } = await direct.run(['logs', talkerName])
        return stdout.includes('line 2\n')
      })
      talked.set(version, await talk(direct))
    }
    await listPresses(plane, hub)
    await documentsRecorded(plane, hub)
    await plane.first.daemon.kill()
    for (const { path, version } of kubectls) {
      await t.test(version, async (t) => {
        const offline = session(path, onSite, `offline-${version}`)
        await until('the hub to be offline', async () => {
          const { status } = await offline.run(['logs', talkerName, '--limit-bytes=13'])
          return status === 0
        })
        for (const args of commands(manifest, customManifest)) {
          const said = comparable(await offline.run(args))
          t.match(said, { status: 0 }, args.join(' '))
          t.strictSame(said, before.get(`${version} ${args.join(' ')}`), args.join(' '))
        }
        t.strictSame((await talk(offline)).map(withoutWarning), talked.get(version))
        const file = join(offline.folder, 'sent')
        writeFileSync(file, 'to and fro')
        await offline.run(['cp', file, `${talkerName}:/www/sent`])
        const read = await offline.run(['exec', talkerName, '--', 'cat', '/www/sent'])
        t.equal(read.stdout, 'to and fro')
        const previous = await offline.run(['logs', stumblerName, '--previous'])
        t.equal(previous.stdout, 'last words\n')
        // Its heartbeat goes on, so that it says something else each time.
        const described = await offline.run(['describe', 'node', nodeName])
        t.match(described.stdout, /^Name: +edge-1$/m)
        const attached = await offline.runUntil(
          ['attach', talkerName],
          (stdout) => stdout.includes('line '),
          async () => true,
        )
        t.ok(attached.made, 'attach')
        const events = await until('an event of the outage', async () => {
          const said = await offline.run(['get', 'events'])
          return said.stderr.includes('written here, and not in the cluster') && said
        })
        t.match(events.stdout, /BackOff/)
        const running = await offline.run(['describe', 'pod', talkerName])
        t.match(running.stdout, /^Events:[^]*Started/m, 'what the kubelet wrote before the cut')
        const crashed = await offline.run(['describe', 'pod', crasherName])
        t.match(crashed.stdout, /^Events:[^]*BackOff/m)
        for (const args of commandsOnPage()) {
          const lasts = args.includes('-f') || args[0] === 'port-forward'
          if (lasts)
            await offline.runUntil(
              args,
              (stdout) => stdout !== '',
              async () => undefined,
            )
          else t.equal((await offline.run(args)).status, 0, args.join(' '))
        }
      })
    }
  },
)
