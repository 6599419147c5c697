import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startHubProcess } from '../kit/cluster/hub-process.ts'
import {
  administrator,
  noControlPlane,
  nodeSubject,
  startControlPlane,
} from '../kit/control-plane.ts'
import { noKubelet, startKubelet } from '../kit/kubelet.ts'
import { until } from '../kit/until.ts'
import { comparedKubectls, discoversSince } from './kubectl/find.ts'
import { withoutStaleness } from './kubectl/mask.ts'
import { Session } from './kubectl/session.ts'
import { type Heard, talk, talker, talkerName } from './kubectl/story.ts'
import { documentedLines } from '../documented-commands.ts'
import { busyboxPod } from './pod.ts'
import { documentsRecorded, readsSchemasSoon } from './recorded-documents.ts'
import { nodeReady, podRunning } from './seen.ts'

t.setTimeout(600_000)

const kubectls = comparedKubectls(discoversSince)
const skip =
  noControlPlane() ??
  noKubelet() ??
  (kubectls.length === 0 ? `no kubectl since ${discoversSince}` : false)
const nodeName = 'edge-1'

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
  'a kubectl new on a node prints the same with a real kubelet and no API server: logs, exec, port-forward, cp',
  { skip, timeout: 600_000 },
  async (t) => {
    const plane = await startControlPlane(t, { controllerManager: true })
    const node = nodeSubject(nodeName)
    const hub = await startHubProcess(plane.workspace, {
      servers: [plane.url],
      kubeconfig: plane.kubeconfig(node),
      nodeName,
      flags: [readsSchemasSoon],
    })
    const onSite = plane.kubeconfig(node, hub.secureUrl, hub.authority)
    await startKubelet(t, {
      nodeName,
      kubeconfig: onSite,
      clientCa: plane.pki.ca.certificate,
      asksWhoMay: true,
    })
    await nodeReady(plane.admin, nodeName)
    // Of a pod that runs well the kubelet writes no event while the link is cut.
    const crasher = busyboxPod('crasher', { nodeName, command: ['sh', '-c', 'exit 1'] })
    for (const pod of [talker(nodeName), crasher])
      await plane.admin.post('/api/v1/namespaces/default/pods', pod)
    await podRunning(plane.admin, talkerName)
    const sessions = kubectls.map(({ path, version }) => {
      const session = (kubeconfig: string, side: string): Session => {
        const cacheFolder = plane.workspace.file(`${side}-${version}`)
        mkdirSync(cacheFolder, { recursive: true })
        return new Session({ kubectl: path, kubeconfig, namespace: 'default', cacheFolder })
      }
      return {
        version,
        direct: session(plane.kubeconfig(administrator), 'direct'),
        offline: session(onSite, 'offline'),
      }
    })
    const [first] = sessions
    await until('two lines of the log', async () => {
      const { stdout } = await first!.direct.run(['logs', talkerName])
      return stdout.includes('line 2\n')
    })
    const before = new Map<string, unknown>()
    for (const { version, direct } of sessions) before.set(version, await talk(direct))
    await documentsRecorded(plane, hub)
    await plane.first.daemon.kill()
    for (const { version, offline } of sessions) {
      await t.test(version, async (t) => {
        await until('the hub to be offline', async () => {
          const { status } = await offline.run(['logs', talkerName, '--limit-bytes=13'])
          return status === 0
        })
        t.strictSame((await talk(offline)).map(withoutWarning), before.get(version))
        const file = join(offline.folder, 'sent')
        writeFileSync(file, 'to and fro')
        await offline.run(['cp', file, `${talkerName}:/www/sent`])
        const read = await offline.run(['exec', talkerName, '--', 'cat', '/www/sent'])
        t.equal(read.stdout, 'to and fro')
        await until('an event of the outage', async () => {
          const { stdout } = await offline.run(['get', 'events'])
          return stdout.includes('pod/crasher')
        })
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
