import { get } from 'node:http'
import { join as joinPath } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { parseDocument } from 'yaml'
import { onAbort, untilAborted } from '../base/abort.ts'
import { keepProcessAlive, soon } from '../base/clock.ts'
import { ownVersion } from '../base/own-version.ts'
import { wholeAnswer } from '../base/whole-answer.ts'
import {
  installReportIn,
  installReportPatch,
  type InstallReport,
} from '../api/kube/install-report.ts'
import { isObject, type JsonObject } from '../api/kube/json.ts'
import { textAt } from '../api/kube/json-at.ts'
import { nodePoolLabel } from '../api/kube/node-pool.ts'
import { option, type ValuesOf } from '../config/option.ts'
import { messageOf } from '../config/settings.ts'
import { boolean, text } from '../config/value.ts'
import { whyLater } from '../hub/store/log/recovery.ts'
import { Adoption, type AdoptionRecord } from '../node/adopt/adoption-record.ts'
import { changeImage, imageIn } from '../node/adopt/hub-image.ts'
import { ApiServer } from '../node/join/api-server.ts'
import { hubIsReady, restartKubelet } from '../node/join/kubelet-service.ts'
import { NodeFiles } from '../node/join/node-files.ts'
import { lockNodeOnceFree, NodeInChange } from '../node/join/node-lock.ts'
import { JoinArchive, sha256, type JoinRecord } from '../node/join/record.ts'
import { podLogCommand, type HubPorts } from '../node/join/static-pod.ts'
import { yurthubOf } from '../node/join/yurthub.ts'
import { assertDone, pullMs } from './change-node.ts'
import { flagCommand, readFlags } from './command-flags.ts'
import type { ExitCode, Terminal } from './command.ts'
import { adoptFlags, adoptOrThrow, passedFlags } from './adopt-command.ts'
import { joinFlags, runJoin } from './join-command.ts'
import { canRestart, missingRoot, nodeNameFlag, nodePathFlags, portsOf } from './join-flags.ts'
import { leaveFlags, runLeave } from './leave-command.ts'
import { Interrupted, stopSignals } from './stop-signals.ts'

export const installFlags = {
  uninstall: option({
    type: boolean,
    help: 'Roll back what an installation has changed, and remove the state of the hub.',
  }),
  adopt: option({
    type: boolean,
    help: "Put the hub in the place of the host's yurthub, as nodehub adopt does, or with --uninstall roll that back. What failed is not tried again as long as the Node says so.",
  }),
  hold: option({
    type: boolean,
    help: 'Do nothing until SIGTERM: the container that runs after the one that installs.',
  }),
  image: joinFlags.image,
  'server-addr': joinFlags['server-addr'],
  namespace: joinFlags.namespace,
  'node-name': nodeNameFlag,
  root: option({
    type: text('FOLDER'),
    default: '/host',
    help: 'Where the root of the host is mounted.',
  }),
  'root-dir': nodePathFlags['root-dir'],
  'kubelet-kubeconfig': joinFlags['kubelet-kubeconfig'],
  'manifest-dir': joinFlags['manifest-dir'],
  'kubelet-flags': joinFlags['kubelet-flags'],
  'proxy-port': joinFlags['proxy-port'],
  'proxy-secure-port': joinFlags['proxy-secure-port'],
  'serve-port': joinFlags['serve-port'],
  'dummy-if-ip': joinFlags['dummy-if-ip'],
  ...passedFlags,
}

type Values = ValuesOf<typeof installFlags>

/** Joins or leaves for the host of its container, and reports the outcome on the Node. */
export const install = flagCommand({
  usage: 'install [--uninstall|--hold] [--adopt] [FLAG...]',
  description: `For the DaemonSets that nodehub manifests --part nodes and --part adoption print: joins the host of
its container, as nodehub join does there, waits until the hub of this version is ready, and
restarts the kubelet once to lead it through the hub. The pool is that of the Node's label. With
--uninstall it leaves, and every file of the host is as it was. Either can be repeated, and goes on
where it was broken off. How it went is in the annotation nodehub.io/install of the Node.

Exit codes: 0, done; 1, it was refused or failed, and says why; 2, invalid arguments.
`,
  flags: installFlags,
  wrong: ({ values, given }) => [
    ...(values.adopt ? [] : Object.keys(passedFlags).filter((name) => given.has(name))).map(
      (name) => `--${name} is for --adopt`,
    ),
    ...(values.uninstall && values.hold ? ['--uninstall and --hold: give one of them'] : []),
    ...(values.hold ? [] : missingRoot(values)),
  ],
  async act({ values }, terminal) {
    if (values.hold) return held()
    using _waiting = keepProcessAlive()
    using stop = stopSignals()
    // An adoption ends between its steps; join and leave go on from every point.
    using _ending = values.adopt ? undefined : onAbort(stop.signal, () => process.exit(1))
    const act = values.adopt ? adopted : values.uninstall ? removed : installed
    return await act({ values, terminal, files: new NodeFiles(values.root), signal: stop.signal })
  },
})

async function held(): Promise<ExitCode> {
  using _waiting = keepProcessAlive()
  using stop = stopSignals()
  await untilAborted(stop.signal)
  return 0
}

interface Run {
  readonly values: Values
  readonly files: NodeFiles
  readonly terminal: Terminal
  /** Aborts with `Interrupted`. */
  readonly signal: AbortSignal
}

/** The host must stay as it is: a person has to decide. */
class Refused extends Error {}

/** A node that went back to yurthub by hand, against its label. */
class RolledBack extends Refused {}

async function installed(run: Run): Promise<ExitCode> {
  const { values, files, terminal } = run
  return reported(run, async (node) => {
    checkHost(values, files)
    const before = new JoinArchive(files, values['root-dir']).read()
    const nodePool = poolOf(node.object, before)
    const awaitHub = await hubAfter(`${values['manifest-dir']}/nodehub.yaml`, portsOf(values), run)
    const said = await quoted((quiet) =>
      runJoin(
        {
          ...readFlags(joinFlags, []).values,
          ...values,
          'nodepool-name': nodePool,
          // Without an API server a node stays of the kind with which it has joined.
          'host-network-node': node.object ? undefined : before?.hostNetwork,
          'node-name': undefined,
          'join-token': undefined,
          systemd: false,
          'offline-ready-condition': true,
        },
        { isForPod: true, lock: () => undefined },
        quiet,
      ),
    )
    terminal.err(said)
    await awaitHub()
    const flags = sha256(files.read(values['kubelet-flags'])?.content ?? Buffer.alloc(0))
    const restarted = installReportIn(node.object ?? {})?.kubelet
    if (node.object === undefined || restarted === flags)
      return { state: 'Installed', kubelet: flags }
    if (!canRestart(values.root)) {
      return {
        state: 'Installed',
        message: 'the kubelet goes through the hub once it is restarted: no systemd was found',
      }
    }
    assertDone('the kubelet was not restarted', await restartKubelet(values.root))
    return { state: 'Installed', kubelet: flags }
  })
}

/**
 * Each try leaves the kubelet without an API server for seconds: an adoption that failed is tried
 * once, one that was refused again and again.
 */
async function adopted(run: Run): Promise<ExitCode> {
  const { values, files, terminal, signal } = run
  const act = async ({ object }: FoundNode): Promise<Outcome> => {
    const record = new Adoption(files, values['root-dir']).read()
    if (values.uninstall) refuseOtherHub(values, files, record)
    else if (record?.phase === 'adopted') return kept(run, record)
    else refuseAgain(values, object, record)
    const flags = {
      ...readFlags(adoptFlags, []).values,
      ...values,
      'dry-run': false,
      apply: false,
      rollback: values.uninstall,
      'offline-ready-condition': true,
    }
    const { code, out, err } = await outputOf(async (quiet) => {
      try {
        return await adoptOrThrow(flags, quiet, signal)
      } catch (cause) {
        if (cause instanceof Interrupted) throw cause
        throw new Refused(messageOf(cause), { cause })
      }
    })
    if (code !== 0) {
      const isAsBefore = new Adoption(files, values['root-dir']).read() === undefined
      if (signal.aborted && isAsBefore) throw new Interrupted(err.trim())
      throw new Error(err.trim())
    }
    terminal.err(`${err}${out}`)
    return { state: values.uninstall ? 'Removed' : 'Installed' }
  }
  return reported(run, act)
}

/** Throws where the node is not to be adopted although it has the label. */
function refuseAgain(
  { image }: Values,
  node: JsonObject | undefined,
  record: AdoptionRecord | undefined,
): void {
  const last = installReportIn(node ?? {})
  if (last?.state === 'Failed' && last.image === image) throw new Error(last.message ?? '')
  if (record === undefined && (last?.state === 'Installed' || last?.rolledBack))
    throw new RolledBack(
      'the node was adopted, and was rolled back on the node: take its label nodehub.io/hub off; to adopt it again, kubectl annotate node NAME nodehub.io/install-',
    )
}

/** A hub that was adopted before, as after a reboot, stays; a static pod has this image then. */
async function kept(run: Run, record: AdoptionRecord): Promise<Outcome> {
  const { values, files } = run
  const { ports, runBy } = record
  if ('staticPod' in runBy) {
    const { staticPod } = runBy
    const awaitHub = await hubAfter(staticPod, ports, run)
    if (imageIn(files.text(staticPod)) !== values.image) {
      refuseLaterCache(values)
      changeImage(files, values['root-dir'], record, { image: values.image, staticPod })
    }
    await awaitHub()
    return { state: 'Installed' }
  }
  const ca = files.text(`${values['root-dir']}/pki/ca.crt`)
  if (!(await hubIsReady({ ports, ca }, pullMs)))
    throw new Error('the node is adopted, and its hub is not ready: journalctl -u nodehub')
  const version = (await hubAt(ports.ops))?.version
  return {
    state: 'Installed',
    image: '',
    ...(version !== undefined && { version }),
    message: 'the node was adopted before, and its hub is upgraded by its package',
  }
}

/** Throws `Refused` where there is a hub, and no adoption that could be rolled back. */
function refuseOtherHub(
  values: Values,
  files: NodeFiles,
  record: AdoptionRecord | undefined,
): void {
  if (record !== undefined) return
  const manifest = `${values['manifest-dir']}/nodehub.yaml`
  const hasJoined = new JoinArchive(files, values['root-dir']).read() !== undefined
  if (!hasJoined && !files.isThere(manifest)) return
  throw new Refused(
    `the hub of this node was not put there by an adoption: ${hasJoined ? 'the label nodehub.io/hub=remove, or nodehub leave on the node, takes it away' : `see who wrote ${manifest}`}`,
  )
}

/** Throws `Refused` where a hub of this release is not to be put here. */
function checkHost(values: Values, files: NodeFiles): void {
  const yurthub = yurthubOf(files, values['manifest-dir'])
  if (yurthub) {
    throw new Refused(
      `this node runs yurthub (${yurthub.path}): take it over with nodehub adopt, or ${yurthub.advice}`,
    )
  }
  refuseLaterCache(values)
}

/** Throws `Refused` where a later release has written the cache. */
function refuseLaterCache(values: Values): void {
  const later = whyLater(joinPath(values.root, values['root-dir'], 'cache'))
  if (later !== undefined) {
    throw new Refused(
      `${later}: the hub stays as it is; to go back, give up the cache while the node has a link (docs/upgrade.md)`,
    )
  }
}

/** The pool of the Node; without an API server that of the join before. */
function poolOf(node: JsonObject | undefined, before: JoinRecord | undefined): string {
  const pool = textAt(node, 'metadata', 'labels', nodePoolLabel)
  if (pool !== '') return pool
  if (node !== undefined)
    throw new Refused(`the Node is in no pool: kubectl label node NAME ${nodePoolLabel}=POOL`)
  if (before === undefined) throw new Error('no API server was reached: the pool is not known')
  return before.nodePool
}

/**
 * To be called before a static pod may be changed. Resolves to a function that rejects unless a hub
 * of this release becomes ready: another process than now, if the pod has been changed. Another
 * image may have the same release.
 */
async function hubAfter(
  manifest: string,
  ports: HubPorts,
  { files, values, signal }: Run,
): Promise<() => Promise<void>> {
  const podNow = (): unknown =>
    parseDocument(files.read(manifest)?.content.toString() ?? '').toJS() as unknown
  const pod = podNow()
  const former = await hubAt(ports.ops)
  return async () => {
    const isChanged = !isDeepStrictEqual(pod, podNow())
    const ca = files.text(`${values['root-dir']}/pki/ca.crt`)
    let hub: RunningHub | undefined
    let isMeant = false
    const isReady = async (): Promise<true | undefined> => {
      hub = await hubAt(ports.ops)
      const isFormer = isChanged && former !== undefined && hub?.started === former.started
      isMeant = hub?.version === ownVersion() && !isFormer
      return (isMeant && (await hubIsReady({ ports, ca }, 0))) || undefined
    }
    if (await soon(pullMs, isReady, signal)) return
    signal.throwIfAborted()
    throw new Error(
      hub === undefined || isMeant
        ? `the hub is not ready: ${podLogCommand}`
        : `the hub is still ${hub.version}: the kubelet has not started ${values.image}`,
    )
  }
}

interface RunningHub {
  readonly version: string
  /** When its process started, in seconds; '' where it does not say. */
  readonly started: string
}

/** The hub at this port; `undefined`: there is none. */
async function hubAt(port: number): Promise<RunningHub | undefined> {
  const asking = get({ host: '127.0.0.1', port, path: '/metrics', agent: false })
  const { text } = await wholeAnswer(asking, 5_000).catch(() => ({ text: '' }))
  const [, version] = /^nodehub_build_info\{[^}]*\bversion="([^"]+)"/m.exec(text) ?? []
  const [, started = ''] = /^process_start_time_seconds (\S+)$/m.exec(text) ?? []
  return version === undefined ? undefined : { version, started }
}

async function removed(run: Run): Promise<ExitCode> {
  const { values, files, terminal } = run
  return reported(run, async () => {
    const before = new JoinArchive(files, values['root-dir']).read()
    if (before !== undefined && 'systemd' in before)
      throw new Refused('the hub is a systemd service: nodehub leave --restart on the node')
    if (before !== undefined && !canRestart(values.root)) {
      throw new Refused(
        'the kubelet goes through the hub and cannot be restarted here, as no systemd was found: nodehub leave on the node',
      )
    }
    const { root, 'root-dir': rootDir } = values
    const flags = { root, 'root-dir': rootDir, purge: true, restart: before !== undefined }
    const said = await quoted((quiet) =>
      runLeave({ ...readFlags(leaveFlags, []).values, ...flags }, () => undefined, quiet),
    )
    terminal.err(said)
    return { state: 'Removed' }
  })
}

interface FoundNode {
  readonly name: string | undefined
  /** `undefined`: no API server has answered, or there is no such Node. */
  readonly object: JsonObject | undefined
}

type Outcome = Pick<InstallReport, 'state'> & Partial<InstallReport>

/** What another command may take to change the node: an adoption that fails, and is rolled back. */
const otherChangeMs = 900_000

/**
 * Acts while nothing else changes the node, and writes the outcome to the Node, where an API server
 * is reached. One that was interrupted, or has waited for another one in vain, writes none: the
 * kubelet starts the next.
 */
async function reported(
  { values, files, terminal, signal }: Run,
  act: (node: FoundNode) => Promise<Outcome>,
): Promise<ExitCode> {
  const { image } = values
  let ask: Ask | undefined
  let node: FoundNode = { name: values['node-name'], object: undefined }
  let report: InstallReport
  using held = new DisposableStack()
  try {
    held.use(
      await lockNodeOnceFree(files, {
        ms: otherChangeMs,
        signal,
        onTaken: ({ message }) => terminal.err(`nodehub install: waiting: ${message}\n`),
      }),
    )
    const api = new ApiServer(files, values['kubelet-kubeconfig'])
    ask = asking(api, values, signal)
    node = await nodeAt(ask, values['node-name'] ?? api.nodeName)
    report = { image, version: ownVersion(), ...(await act(node)) }
  } catch (cause) {
    if (cause instanceof Interrupted || cause instanceof NodeInChange) {
      terminal.err(`nodehub install: ${cause.message}\n`)
      return 1
    }
    const state = cause instanceof Refused ? 'Refused' : 'Failed'
    const kubelet = installReportIn(node.object ?? {})?.kubelet
    report = {
      state,
      image,
      version: ownVersion(),
      message: messageOf(cause),
      ...(kubelet !== undefined && { kubelet }),
      ...(cause instanceof RolledBack && { rolledBack: true }),
    }
  }
  const unsaid = ask && node.object ? await written(ask, node, report) : 'no API server was reached'
  const { state, message = 'as it should be' } = report
  terminal.err(`nodehub install: ${state}: ${message}\n`)
  if (unsaid !== undefined) terminal.err(`note: the Node does not say so: ${unsaid}\n`)
  return state === 'Installed' || state === 'Removed' ? 0 : 1
}

type Ask = ApiServer['ask']

/** For a hub that has only just been exchanged, by which the API server is reached. */
const exchangeMs = 60_000

/** Asks again while there is no answer, on a node whose hub an adoption may have exchanged. */
function asking(api: ApiServer, { adopt, timeout }: Values, signal: AbortSignal): Ask {
  const ms = adopt ? Math.min(timeout, exchangeMs) : 0
  return async (...request) => {
    let last = (): ReturnType<Ask> => Promise.reject(signal.reason as Error)
    const attempt = async (): Promise<true | undefined> => {
      const [answer] = await Promise.allSettled([api.ask(...request)])
      const isAnswered = answer.status === 'fulfilled'
      last = () => (isAnswered ? Promise.resolve(answer.value) : Promise.reject(answer.reason))
      return (isAnswered && answer.value.status < 500) || undefined
    }
    await soon(ms, attempt, signal)
    return last()
  }
}

async function nodeAt(ask: Ask, name: string | undefined): Promise<FoundNode> {
  if (name === undefined) return { name, object: undefined }
  try {
    const { status, body } = await ask('GET', `/api/v1/nodes/${name}`)
    return { name, object: status === 200 && isObject(body) ? body : undefined }
  } catch {
    return { name, object: undefined }
  }
}

/** Resolves to why the report was not written; `undefined` on success. */
async function written(
  ask: Ask,
  { name, object }: FoundNode,
  report: InstallReport,
): Promise<string | undefined> {
  const patch = installReportPatch(report)
  if (JSON.stringify(installReportIn(object ?? {})) === JSON.stringify(report)) return undefined
  try {
    const { status } = await ask('PATCH', `/api/v1/nodes/${name}`, patch)
    return status === 200 ? undefined : `the API server answered ${status}`
  } catch (cause) {
    return messageOf(cause)
  }
}

/** Runs a command that has to succeed; resolves to its output. */
async function quoted(run: (terminal: Terminal) => Promise<ExitCode>): Promise<string> {
  const { code, out, err } = await outputOf(run)
  if (code !== 0) throw new Error(err.trim())
  return `${err}${out}`
}

async function outputOf(
  run: (terminal: Terminal) => Promise<ExitCode>,
): Promise<{ code: ExitCode; out: string; err: string }> {
  let [out, err] = ['', '']
  const code = await run({
    out: (said) => void (out += said),
    err: (said) => void (err += said),
  })
  return { code, out, err }
}
