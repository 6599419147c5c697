import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { RecentLines } from '../base/recent-items.ts'
import { readConfig, type HubConfig } from '../config/config.ts'
import { processSources } from '../config/process.ts'
import { SettingsInForce } from '../config/settings-in-force.ts'
import { startHub, type Hub, type HubOptions } from '../hub/hub.ts'
import { CannotListen } from '../http/server/listening.ts'
import { startSandbox, type Sandbox } from '../sandbox/sandbox.ts'
import { refuse, type ExitCode, type Terminal } from './command.ts'
import { nodeName, seedCluster } from './demo-cluster.ts'
import { keys, obey } from './demo-keys.ts'
import { DemoNode } from './demo-node.ts'
import { alsoTo, createLog, recentLogBounds, standardError, type LogSink } from './log.ts'

/**
 * Runs a cluster in memory, a hub in front of it and a node's programs behind it, prints what to
 * try, and reads commands from the keyboard. Flags are those of `start`; ports are free ones unless
 * they are given.
 */
export async function runDemo(argv: readonly string[], terminal: Terminal): Promise<ExitCode> {
  if (argv.some((each) => /^--server-addr(=|$)/.test(each)))
    return refuse(terminal, 'demo', [ownServer])
  const folder = mkdtempSync(join(tmpdir(), 'nodehub-demo-'))
  await using parts = new AsyncDisposableStack()
  parts.defer(() => rmSync(folder, { recursive: true, force: true }))
  const sandbox = parts.use(await startSandbox())
  const second = parts.use(await sandbox.replica())
  seedCluster(sandbox)
  const user = await nodeUser(sandbox)
  const servers = [sandbox.url, second.url]
  const result = readConfig(
    processSources([...flags(folder, servers, sandbox.caCertificate ?? '', user), ...argv]),
  )
  if ('mistakes' in result) return refuse(terminal, 'demo', result.mistakes)
  if (result.config.plainProxy !== 'served') return refuse(terminal, 'demo', [needsPlain])
  let welcomed = false
  const recentLog = new RecentLines(recentLogBounds)
  const settings = new SettingsInForce(result)
  const options: HubOptions = {
    log: demoLog(result.config.logLevel, recentLog),
    recentLog,
    settings: () => settings.report(),
    onOnline: (online) => {
      if (welcomed) terminal.out(online ? back : gone)
    },
  }
  const hub = await startHub(result.config, options).catch((error: unknown) => {
    if (!(error instanceof CannotListen)) throw error
    terminal.err(`nodehub demo: ${error.message}\n`)
  })
  if (!hub) return 1
  const node = parts.use(new DemoNode(result.config, options, hub))
  const token = join(result.config.rootDir, 'inspect.token')
  const inspect = (report: string): string =>
    `npm start --silent -- inspect ${report} --serve-port=${hub.opsPort} --token-file=${token}`
  terminal.out(
    welcome(servers, hub, {
      plain: writeKubeconfig(folder, 'kubectl', { server: node.server }, {}),
      secure: kubeconfigOverTls(folder, result.config, hub, user),
      token,
      inspectBoot: inspect('boot'),
    }),
  )
  welcomed = true
  await obey(terminal, { sandbox, second, node, inspect })
  terminal.out('\n  Stopping.\n')
  return 0
}

/** The status page shows more of the log than the terminal, where only errors belong. */
function demoLog(level: HubConfig['logLevel'], recent: RecentLines): Logger {
  const terminal = standardError()
  const errors: LogSink = {
    write: (line) => {
      if (/"level":"(?:error|fatal)"/.test(line)) terminal.write(line)
    },
  }
  return level === 'error'
    ? createLog('info', alsoTo(recent, errors))
    : createLog(level, alsoTo(recent, terminal))
}

const ownServer =
  '--server-addr: the demonstration brings an API server of its own; nodehub start runs a hub for another'

const needsPlain = 'the simulated clients speak without TLS: --plain-proxy has to be on'

const gone =
  '\n  The cloud is gone. The hub answers requests from the cache now: try kubectl again.\n'
const back = '\n  The cloud is there: the hub forwards requests to it.\n'

/** The certificate that API server and TLS proxy accept as the node's. */
async function nodeUser(sandbox: Sandbox): Promise<object> {
  const { certificate, key } = await sandbox.clientCertificate(`system:node:${nodeName}`, [
    'system:nodes',
  ])
  return { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) }
}

/** Trusts the hub's own authority, unless the hub has another serving certificate. */
function kubeconfigOverTls(folder: string, config: HubConfig, hub: Hub, user: object): string {
  const server = `https://127.0.0.1:${hub.proxySecurePort}`
  const cluster = config.tls.serving
    ? { server }
    : { server, 'certificate-authority': join(config.rootDir, 'pki', 'ca.crt') }
  return writeKubeconfig(folder, 'kubectl-over-tls', cluster, user)
}

function flags(folder: string, servers: readonly string[], ca: string, user: object): string[] {
  const kubeconfig = writeKubeconfig(
    folder,
    'node',
    { server: servers[0], 'certificate-authority-data': base64(ca) },
    user,
  )
  return [
    `--server-addr=${servers.join(',')}`,
    `--kubeconfig=${kubeconfig}`,
    `--node-name=${nodeName}`,
    `--root-dir=${join(folder, 'state')}`,
    // A hub of this machine may have the usual ones.
    ...['serve', 'proxy', 'proxy-secure'].map((port) => `--${port}-port=0`),
    '--heartbeat-interval-seconds=2',
    // The demo rarely runs as root, and its data is made up.
    '--anonymous-loopback=node',
    '--enable-dummy-if=false',
    // Only the pods of a host-network pool are affected, which the demo makes on request.
    '--host-network-propagation=on',
    '--plain-proxy=true',
    '--shutdown-grace-period=1s',
    '--log-level=error',
  ]
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')

/** JSON is YAML: every kubectl reads it. */
function writeKubeconfig(folder: string, name: string, cluster: object, user: object): string {
  const path = join(folder, `${name}.kubeconfig`)
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'demo', cluster }],
    users: [{ name, user }],
    contexts: [{ name: 'demo', context: { cluster: 'demo', user: name } }],
    'current-context': 'demo',
  }
  writeFileSync(path, JSON.stringify(config), { mode: 0o600 })
  return path
}

/** Kubeconfigs by listener; token and command of `nodehub inspect`: demos rarely are root. */
type DemoFiles = Readonly<Record<'plain' | 'secure' | 'token' | 'inspectBoot', string>>

const welcome = (
  [first = '', second = '']: readonly string[],
  hub: Hub,
  { plain, secure, token, inspectBoot }: DemoFiles,
): string => `
  Status page            http://127.0.0.1:${hub.opsPort}/#token=${readFileSync(token, 'utf8')}

  A cluster in memory    ${first}, and a second API server ${second}
  The hub before it      http://127.0.0.1:${hub.proxyPort}, and with TLS https://127.0.0.1:${hub.proxySecurePort}
                         (metrics and readiness: http://127.0.0.1:${hub.opsPort})
  Behind it              a simulated kubelet and kube-proxy of node ${nodeName}

  Try, in another terminal:

    export KUBECONFIG=${plain}
    kubectl get pods -A
    kubectl get -w -o name pods -n plant
    kubectl describe node ${nodeName}
    kubectl logs -n plant collector-0
    curl 'http://127.0.0.1:${hub.opsPort}/readyz?verbose'

  With KUBECONFIG=${secure} it is the same over TLS, with a certificate.

  Would the node and its pods come back now, without the cloud? In this folder:

    ${inspectBoot}

  Then unplug the cloud here, and try the same again. What was read before still reads the same, and kubectl
  warns how old it is; what was not, and changes, are refused with a 503, logs with a 403: they come from the node's
  kubelet, for a caller with its certificate. Parts of what was read are there, too: kubectl get pods -n warehouse.
  A kubectl that watches stays, and shows the next change when the cloud is back.

${keys}`
