import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { after, every } from '../../src/base/clock.ts'
import { installReportIn, type InstallReport } from '../../src/api/kube/install-report.ts'
import { install } from '../../src/cli/install-command.ts'
import { Adoption } from '../../src/node/adopt/adoption-record.ts'
import { NodeFiles } from '../../src/node/join/node-files.ts'
import { plainNode } from '../kit/cluster/plain-node.ts'
import { nodeName, nodes } from '../kit/cloud.ts'
import { nodehubProgram } from '../kit/hub-programs.ts'
import { until } from '../kit/until.ts'
import { adoptable, run, type Adoptable } from '../node/adopt/adoptable.ts'
import type { Said } from '../kit/terminal.ts'
import { treeOf } from '../node/join/node-root.ts'

t.setTimeout(240_000)

const state = '/var/lib/nodehub'
const aside = '.yurt-hub.yaml.nodehub-adopted'

interface Node extends Adoptable {
  /** As the pods of the adopting DaemonSets run it. */
  readonly installing: (...flags: string[]) => Promise<Said>
  readonly report: () => InstallReport | undefined
  /** The hubs that start with the node. */
  readonly hubs: () => readonly string[]
  /** How far the record says that it is adopted. */
  readonly phase: () => string | undefined
  readonly before: Record<string, string>
}

/** Fails the test as soon as both hubs start with the node. */
async function startNode(t: Test, everyMs?: number, flags: readonly string[] = []): Promise<Node> {
  const adopted = await adoptable(t, flags, everyMs)
  const { root, cloud } = adopted
  const names = () => new NodeFiles(root).names('/etc/kubernetes/manifests')
  const hubs = () => names().filter((name) => /^(?:nodehub|yurt-hub)\.yaml$/.test(name))
  const looking = every(5, () => {
    if (existsSync(root) && hubs().length > 1) t.fail('both hubs start with the node')
  })
  t.teardown(() => looking[Symbol.dispose]())
  return {
    ...adopted,
    hubs,
    installing: (...flags) =>
      run(install, [`--root=${root}`, `--node-name=${nodeName}`, '--adopt', ...flags]),
    report: () => installReportIn(cloud.sandbox.get(nodes, nodeName) ?? {}),
    phase: () => new Adoption(new NodeFiles(root), state).read()?.phase,
    before: treeOf(root, state),
  }
}

const isAside = ({ root }: Node): boolean =>
  existsSync(join(root, '/etc/kubernetes/manifests', aside))

void t.test('an adoption and a roll-back that are begun at once follow each other', async (t) => {
  const node = await startNode(t, 1200)
  const [adopted, back] = await Promise.all([node.installing(), node.installing('--uninstall')])
  t.match(adopted, { code: 0, err: /Installed/ })
  t.match(back.err, /waiting: .* is changing this node .*\n.*Removed/s)
  t.equal(back.code, 0)
  t.strictSame(node.hubs(), ['yurt-hub.yaml'])
  t.equal(node.phase(), undefined)
  t.strictSame(treeOf(node.root, state), node.before)
  t.match(node.report(), { state: 'Removed' })

  const other = await Promise.all([node.installing('--uninstall'), node.installing()])
  t.strictSame(
    other.map(({ code }) => code),
    [0, 0],
  )
  t.strictSame(node.hubs(), ['nodehub.yaml'])
  t.equal(node.phase(), 'adopted')
  t.match(node.report(), { state: 'Installed' })
  t.ok(node.node.runsHub)
  t.notOk(node.node.runsYurthub)
})

interface Running {
  /** As a kubelet ends a container whose pod is deleted: what goes on for longer is killed. */
  readonly terminate: () => void
  readonly ended: Promise<Said>
  /** Resolves once it has written this to standard error. */
  readonly says: (text: string) => Promise<void>
}

/** As of the pods of the DaemonSets. */
const graceMs = 30_000

/** A command in a process of its own. */
function start(t: Test, { root }: Node, ...words: readonly string[]): Running {
  const [program, args] = plainNode(nodehubProgram, ...words, `--root=${root}`)
  const child = spawn(program, args)
  t.teardown(() => child.kill('SIGKILL'))
  const said = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said.out += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said.err += text))
  const closed = once(child, 'close') as Promise<[number]>
  return {
    terminate: () => {
      child.kill('SIGTERM')
      after(graceMs, () => child.kill('SIGKILL'))
    },
    ended: closed.then(([code]) => ({ code, ...said })),
    says: async (text) => void (await until(text, () => said.err.includes(text))),
  }
}

/** The node is as it was, and yurthub runs once the kubelet heeds its manifests. */
async function isAsBefore(t: Test, node: Node): Promise<void> {
  t.strictSame(node.hubs(), ['yurt-hub.yaml'])
  t.equal(node.phase(), undefined)
  t.strictSame(treeOf(node.root, state), node.before)
  node.node.reconciles = true
  await until('yurthub', () => node.node.runsYurthub && !node.node.runsHub)
}

const ended = /^nodehub adopt: ended by SIGTERM\nRolling back/m

void t.test('SIGTERM ends each wait for an end, and yurthub is in its place', async (t) => {
  const node = await startNode(t)

  await t.test('of an adoption for yurthub', async (t) => {
    node.node.reconciles = false
    const adopting = start(t, node, 'adopt')
    await until('the wait for the ports', () => isAside(node))
    adopting.terminate()
    t.match(await adopting.ended, { code: 1, err: ended, out: /Rolled back/ })
    t.equal(node.node.started, 0)
    await isAsBefore(t, node)
  })

  await t.test('of a DaemonSet, also for the lock, and its next pod begins anew', async (t) => {
    node.node.reconciles = false
    const named = `--node-name=${nodeName}`
    const adopting = start(t, node, 'install', '--adopt', named)
    await until('the wait for the ports', () => isAside(node))
    const waiting = start(t, node, 'install', '--adopt', '--uninstall', named)
    await waiting.says('waiting')
    waiting.terminate()
    t.match(await waiting.ended, { code: 1, err: /nodehub install: ended by SIGTERM\n$/ })
    adopting.terminate()
    t.match(await adopting.ended, { code: 1, err: /^nodehub install: .*ended by SIGTERM/ })
    t.equal(node.report(), undefined, 'it is no failure')
    await isAsBefore(t, node)
    t.match(await node.installing(), { code: 0, err: /Installed/ })
  })

  await t.test('of a roll-back for the hub', async (t) => {
    node.node.reconciles = false
    const rolling = start(t, node, 'adopt', '--rollback')
    await until('the wait for the ports', () => node.phase() === 'rolling-back')
    rolling.terminate()
    t.match(await rolling.ended, { code: 0, err: /note: the hub has not ended yet/ })
    await isAsBefore(t, node)
  })
})

void t.test('SIGTERM ends each wait for a start, and yurthub is in its place', async (t) => {
  const node = await startNode(t)

  await t.test('of an adoption for the Node with the hub', async (t) => {
    node.node.renews = false
    const adopting = start(t, node, 'adopt')
    await until('the hub', () => node.node.runsHub)
    t.equal(node.phase(), 'starting')
    adopting.terminate()
    t.match(await adopting.ended, { code: 1, err: ended })
    await isAsBefore(t, node)
  })

  await t.test('of a roll-back for yurthub', async (t) => {
    node.node.renews = true
    t.equal((await node.adopting()).code, 0)
    const rolling = start(t, node, 'adopt', '--rollback')
    await until('the end of the hub', () => !node.node.runsHub)
    node.node.reconciles = false
    await until('the wait for yurthub', () => node.hubs().includes('yurt-hub.yaml'))
    rolling.terminate()
    t.match(await rolling.ended, { code: 0, err: /note: yurthub does not answer yet/ })
    await isAsBefore(t, node)
  })
})

void t.test('a DaemonSet leaves out the flags of yurthub that --drop-flags names', async (t) => {
  const node = await startNode(t, undefined, ['--of-a-fork=1'])
  t.match(await node.installing(), { code: 1, err: /Refused: .*--of-a-fork/ })
  node.markReady('False')
  const { code, err } = await node.installing('--drop-flags=of-a-fork')
  t.equal(code, 1)
  t.match(err, /Refused: Node .* is not Ready now/)
})

void t.test('a pod waits for the hub that has only just been exchanged, to report', async (t) => {
  const { cloud, installing, report } = await startNode(t)
  const isOfNode = ({ path }: { path: string }): boolean => path === `/api/v1/nodes/${nodeName}`
  const failing = cloud.sandbox.faults.fail(503, isOfNode)
  const asked = cloud.sandbox.nextRequest(isOfNode)
  const rolling = installing('--uninstall')
  await asked
  failing[Symbol.dispose]()
  t.match(await rolling, { code: 0, err: /Removed/ })
  t.match(report(), { state: 'Removed' })
})

void t.test('an adoption that fails is reported, and not repeated', async (t) => {
  const node = await startNode(t)
  node.node.renews = false
  const why = /the node is not ready with the hub/
  for (let i = 0; i < 2; i += 1) {
    t.match(await node.installing('--timeout=4s'), { code: 1, err: why })
    t.match(node.report(), { state: 'Failed', message: why })
    t.strictSame(node.hubs(), ['yurt-hub.yaml'])
  }
  t.equal(node.node.started, 1, 'the hub was not tried again')
})
