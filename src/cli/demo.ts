import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pods } from '../api/kube/resources.ts'
import type { Logger } from 'pino'
import { untilAborted } from '../base/abort.ts'
import { now } from '../base/clock.ts'
import { RecentLines } from '../base/recent-lines.ts'
import { readConfig, type HubConfig, type Setting } from '../config/config.ts'
import { processSources } from '../config/process.ts'
import { startHub, type Hub, type HubOptions } from '../hub/hub.ts'
import { AnswerCounts } from '../hub/wiring/answer-counts.ts'
import { CannotListen } from '../http/server/listening.ts'
import { startSandbox, type Sandbox } from '../sandbox/sandbox.ts'
import { aligned } from './aligned.ts'
import { refuse, type ExitCode, type Terminal } from './command.ts'
import { nodeName, seedCluster, simulateNode } from './demo-cluster.ts'
import { alsoTo, createLog, recentLogBounds, standardError, type LogSink } from './log.ts'

/**
 * Runs a cluster in memory, a hub in front of it and a node's programs behind it, prints what to
 * try, and reads commands from the keyboard. Flags are those of `start`; if a default port is in
 * use, the demo reports it and uses a free one.
 */
export async function runDemo(argv: readonly string[], terminal: Terminal): Promise<ExitCode> {
  if (argv.some((each) => /^--server-addr(=|$)/.test(each)))
    return refuse(terminal, 'demo', [ownServer])
  const folder = mkdtempSync(join(tmpdir(), 'nodehub-demo-'))
  await using parts = new AsyncDisposableStack()
  parts.defer(() => rmSync(folder, { recursive: true, force: true }))
  const sandbox = parts.use(await startSandbox())
  seedCluster(sandbox)
  const user = await nodeUser(sandbox)
  const result = readConfig(processSources([...flags(folder, sandbox, user), ...argv]))
  if ('mistakes' in result) return refuse(terminal, 'demo', result.mistakes)
  if (result.config.plainProxy !== 'served') return refuse(terminal, 'demo', [needsPlain])
  const counts = new AnswerCounts()
  let welcomed = false
  const recentLog = new RecentLines(recentLogBounds)
  const started = await startOnFreePorts(result, terminal, {
    log: demoLog(result.config.logLevel, recentLog),
    recentLog,
    onOnline: (online) => {
      if (welcomed) terminal.out(online ? back : gone)
    },
    onAnswer: (line) => counts.add(line, now()),
  })
  if (started === undefined) return 1
  const hub = parts.use(started)
  const server = `http://127.0.0.1:${hub.proxyPort}`
  parts.use(simulateNode(server))
  terminal.out(
    welcome(sandbox, hub, {
      plain: writeKubeconfig(folder, 'kubectl', { server }, {}),
      secure: kubeconfigOverTls(folder, result.config, hub, user),
      token: join(result.config.rootDir, 'inspect.token'),
    }),
  )
  welcomed = true
  await obey(terminal, sandbox, counts)
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
  '\n  The cloud is gone. What is asked now is answered from the cache: try kubectl again.\n'
const back = '\n  The cloud is there: what is asked goes to it.\n'

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

function flags(folder: string, sandbox: Sandbox, user: object): string[] {
  const kubeconfig = writeKubeconfig(
    folder,
    'node',
    { server: sandbox.url, 'certificate-authority-data': base64(sandbox.caCertificate ?? '') },
    user,
  )
  return [
    `--server-addr=${sandbox.url}`,
    `--kubeconfig=${kubeconfig}`,
    `--node-name=${nodeName}`,
    `--root-dir=${join(folder, 'state')}`,
    '--heartbeat-interval-seconds=2',
    // The demo rarely runs as root, and its data is made up.
    '--anonymous-loopback=node',
    '--enable-dummy-if=false',
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

/** The configuration with any free port in place of a flag's. */
const withFreePort: Readonly<Record<string, (config: HubConfig) => HubConfig>> = {
  '--serve-port': (config) => ({ ...config, ops: { ...config.ops, port: 0 } }),
  '--proxy-port': (config) => ({ ...config, proxy: { ...config.proxy, port: 0 } }),
  '--proxy-secure-port': (config) => ({ ...config, proxy: { ...config.proxy, securePort: 0 } }),
}

/**
 * Starts the hub on the configured ports, with a free one for each default port that is in use.
 * `undefined` if it cannot listen at a port that was given; the reason is printed.
 */
async function startOnFreePorts(
  { config, settings }: { readonly config: HubConfig; readonly settings: readonly Setting[] },
  terminal: Terminal,
  options: HubOptions,
): Promise<Hub | undefined> {
  const given = settings.filter(({ origin }) => origin !== undefined).map(({ name }) => `--${name}`)
  let free = config
  for (;;) {
    try {
      return await startHub(free, options)
    } catch (error) {
      if (!(error instanceof CannotListen)) throw error
      const { code, portFlag = '', message } = error
      const isUsual = code === 'EADDRINUSE' && !given.includes(portFlag)
      const freed = isUsual ? withFreePort[portFlag]?.(free) : undefined
      terminal.err(`nodehub demo: ${message}${freed ? '; a free one is used now' : ''}\n`)
      if (freed === undefined) return undefined
      free = freed
    }
  }
}

interface DemoFiles {
  /** Kubeconfigs, by listener. */
  readonly plain: string
  readonly secure: string
  /** For `nodehub inspect`: the demo rarely runs as root. */
  readonly token: string
}

const welcome = (sandbox: Sandbox, hub: Hub, { plain, secure, token }: DemoFiles): string => `
  Status page            http://127.0.0.1:${hub.opsPort}/#token=${readFileSync(token, 'utf8')}

  A cluster in memory    ${sandbox.url}
  The hub before it      http://127.0.0.1:${hub.proxyPort}, and with TLS https://127.0.0.1:${hub.proxySecurePort}
                         (metrics and readiness: http://127.0.0.1:${hub.opsPort})
  Behind it              a simulated kubelet and kube-proxy of node ${nodeName}

  Try, in another terminal:

    export KUBECONFIG=${plain}
    kubectl get pods -A
    kubectl get -w pods -n plant
    kubectl describe node ${nodeName}
    kubectl logs -n plant collector-0
    curl 'http://127.0.0.1:${hub.opsPort}/readyz?verbose'

  With KUBECONFIG=${secure} it is the same over TLS, with a certificate.

  Would the node and its pods come back now, without the cloud? In this folder:

    npm start --silent -- inspect boot --serve-port=${hub.opsPort} --token-file=${token}

  Then unplug the cloud here, and try the same again. What was read before still reads the same, and kubectl
  warns how old it is; what was not, logs and changes are refused with a 503. Parts of what was read are there,
  too: kubectl get pods -n warehouse. A kubectl that watches ends when the cloud goes or returns.

${keys}`

const keys = `  Type, and press return:
    u  unplug the cloud        p  plug it in again
    c  change a pod there      s  show who was answered from where
    q  quit
`

/** A table of component, request, and the answers of the cloud, the cache and the hub itself. */
function answersTable(counts: AnswerCounts): string {
  const shown = (count: number): string => (count === 0 ? '' : String(count))
  const rows = counts
    .all()
    .map(({ component, verb, what, cloud, cache, hub }) => [
      component || 'unknown',
      `${verb} ${what}`,
      ...[cloud, cache, hub].map(shown),
    ])
  return aligned(['component', 'request', 'cloud', 'cache', 'hub'], rows)
    .replace(/^/gm, '  ')
    .trimEnd()
}

/** Runs typed commands until `q`, the end of the input, or a signal. */
async function obey(terminal: Terminal, sandbox: Sandbox, counts: AnswerCounts): Promise<void> {
  let unplugged: AsyncDisposable | undefined
  let changes = 0
  const commands: Record<string, () => Promise<void> | void> = {
    u: async () => {
      unplugged ??= await sandbox.faults.refuse()
      terminal.out('  Unplugged.\n')
    },
    p: async () => {
      await unplugged?.[Symbol.asyncDispose]()
      unplugged = undefined
      terminal.out('  Plugged in.\n')
    },
    c: () => {
      const pod = sandbox.get(pods, 'collector-0', 'plant')
      if (!pod) return
      changes += 1
      const annotations = { 'demo.example/change': String(changes) }
      sandbox.update(pods, { ...pod, metadata: { ...pod.metadata, annotations } })
      terminal.out(`  plant/collector-0 has change ${changes} now.\n`)
    },
    s: () => terminal.out(`\n${answersTable(counts)}\n\n`),
  }
  const stopped = new AbortController()
  const stop = (): void => stopped.abort()
  process.once('SIGTERM', stop).once('SIGINT', stop)
  const lines = createInterface({ input: process.stdin, signal: stopped.signal })
  for await (const line of lines) {
    const word = line.trim()
    if (word === 'q') stop()
    const command = commands[word]
    if (command) await command()
    else if (word !== '' && word !== 'q') terminal.out(keys)
  }
  // Without a keyboard it runs until a signal.
  if (process.stdin.isTTY !== true) await untilAborted(stopped.signal)
  await unplugged?.[Symbol.asyncDispose]()
}
