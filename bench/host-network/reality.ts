import { hostNetworkLabel } from '../../src/api/kube/node-pool.ts'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import { valueAt, listAt, objectAt, textAt } from '../../src/api/kube/json-at.ts'
import { pause } from '../../src/base/clock.ts'
import { nodeReady } from '../../test/control-plane/seen.ts'
import type { RunningContainer } from '../../test/kit/cluster/containerd.ts'
import { until } from '../../test/kit/until.ts'
import type { Scope } from '../../test/kit/cluster/workspace.ts'
import type { Arm } from './arms.ts'
import { early, endingOf, modelledBefore } from './model.ts'
import { elsewhere, type NodeKind, type RealNode, startNode } from './node.ts'
import {
  counted,
  type Expected,
  type Fate,
  isAsExpected,
  isRunning,
  networkOf,
  type Outcome,
  type Remark,
} from './outcome.ts'
import type { RealPlane } from './plane.ts'
import { Series } from './series.ts'
import {
  breaksBaseline,
  happenedFrom,
  hasTakenUp,
  mainStatusOf,
  type Observed,
  tellsOf,
  timesTold,
} from './observed.ts'
import type { Row } from './table.ts'
import { nodeUsage } from './usage.ts'
import type { Watch } from './watch.ts'
import {
  namespaceOf,
  namespaces,
  ownerOf,
  podOf,
  type Program,
  updated,
  type Workload,
  workloads,
} from './workloads.ts'

const podsOf = (namespace: string): string => `/api/v1/namespaces/${namespace}/pods`
const eventsOf = (namespace: string): string => `/api/v1/namespaces/${namespace}/events`
const ownersOf = (kind: string): string => `/apis/apps/v1/namespaces/default/${kind}s`
const owners = ['daemonset', 'deployment'].map(ownersOf)

/** What containers that administer the network give it. */
const given = workloads.flatMap(({ programs }) => programs.flatMap(({ gives }) => gives ?? []))

/** For so long looks have to find the same. */
const steadyMs = 2_000

/** So often it is looked at least. What the API tells is looked at when it is told. */
const lookMs = 200

/** So many connections reach both of two programs that share a port, but for one time in 10,000. */
const connections = 14

interface SeenPod extends Fate {
  readonly name: string
  /** '' where it is on none. */
  readonly node: string
  readonly restarts: number
}

interface ObserveOptions extends Partial<Watch> {
  /** How long is looked on where what is seen is not as expected. */
  readonly seconds?: number
}

/** A control plane, and nodes that arms are tried on; all end with the scope. */
export class Reality {
  readonly #real: RealPlane
  readonly #nodes: readonly RealNode[]
  /** One of no pool, for rows that want it. */
  readonly #elsewhere: RealNode | undefined

  constructor(real: RealPlane, nodes: readonly RealNode[], elsewhere?: RealNode) {
    this.#real = real
    this.#nodes = nodes
    this.#elsewhere = elsewhere
  }

  /**
   * Creates a workload's pods as the arm has them, and looks at them until they have stayed as they
   * are for some seconds. Where that is not as `expected`, it looks on for `seconds`: what is still
   * to come may come late. Then removes them.
   */
  async observe(row: Pick<Row, 'arm' | 'workload' | 'modelled'>, options: ObserveOptions = {}) {
    const { arm, workload } = row
    this.#real.webhooks.propagate = arm.admitsToHostNetwork
    await Promise.all(this.#nodes.map(({ hub }) => hub.propagate(arm.propagation)))
    if (workload.mixed) await this.#admitElsewhere(true)
    const trial = new Trial(this.#real, [...this.#nodes, ...this.#also(workload)], row, options)
    try {
      return await trial.run()
    } finally {
      await this.#clear()
      if (workload.mixed) await this.#admitElsewhere(false)
    }
  }

  /** Takes its nodes out of the cluster, so that no pod of another arm is put on them. */
  async retire(): Promise<void> {
    for (const { name, kubelet } of this.#every()) {
      await kubelet.daemon.kill()
      await this.#real.plane.admin.send('DELETE', `/api/v1/nodes/${name}`)
    }
  }

  #every(): readonly RealNode[] {
    return [...this.#nodes, ...(this.#elsewhere ? [this.#elsewhere] : [])]
  }

  #also({ mixed }: Workload): readonly RealNode[] {
    return mixed && this.#elsewhere ? [this.#elsewhere] : []
  }

  /** Lets pods onto the node of no pool, or keeps them off. */
  async #admitElsewhere(admits: boolean): Promise<void> {
    if (this.#elsewhere === undefined) throw new Error('there is no node of no pool')
    const path = `/api/v1/nodes/${this.#elsewhere.name}`
    const { admin } = this.#real.plane
    const node = JSON.parse((await admin.get(path)).body.toString()) as JsonObject
    const others = listAt(node, 'spec', 'taints').filter(
      (taint) => textAt(taint, 'key') !== elsewhere.key,
    )
    const taints = admits ? others : [...others, elsewhere]
    const patch = JSON.stringify({ spec: { taints } })
    const { status } = await admin.send('PATCH', path, patch, 'application/merge-patch+json')
    if (status !== 200) throw new Error(`a change of the taints was answered ${status}`)
  }

  async #clear(): Promise<void> {
    const { admin } = this.#real.plane
    // First, lest they are made again.
    for (const path of owners) await admin.send('DELETE', `${path}?propagationPolicy=Background`)
    const all = Object.values(namespaces)
    for (const namespace of all)
      await admin.send('DELETE', `${podsOf(namespace)}?gracePeriodSeconds=1`)
    await until(
      'everything to be gone',
      async () => {
        const running = await Promise.all(
          this.#every().map(async ({ kubelet: { runtime } }) => {
            const its = await runtime.running()
            // Their programs do not end when they are asked to.
            for (const each of its) if (each.kind === 'container') runtime.kill(each)
            return its
          }),
        )
        const left = [...all.map(this.#real.followed.pods), ...running].flat()
        return left.length === 0 && (await this.#owned()).length === 0
      },
      { seconds: 150 },
    )
    for (const namespace of all) await admin.send('DELETE', eventsOf(namespace))
    // What a container gave the network of its node stays when its pod is gone.
    for (const node of this.#every()) for (const address of given) node.remove(address)
  }

  async #owned(): Promise<readonly Json[]> {
    return (await Promise.all(owners.map((path) => listOf(this.#real, path)))).flat()
  }
}

/** One row, from its pods' creation until all that is to be counted was. */
class Trial {
  readonly #real: RealPlane
  readonly #nodes: readonly RealNode[]
  readonly #arm: Arm
  readonly #workload: Workload
  readonly #expected: Expected
  readonly #options: Required<ObserveOptions>
  readonly #series = new Series()
  readonly #pods: string
  readonly #refused: SeenPod[] = []
  /** Names of those that answered while the API server could not be reached. */
  #offline: ReadonlySet<string> = new Set()
  #seen: readonly SeenPod[] = []
  /** The uids of its pods and of what makes them. */
  readonly #ids = new Set<string>()
  /** Whether the API does not tell yet of what happened: what it tells is of the time before. */
  #isBehind: () => Promise<boolean> = () => Promise.resolve(false)

  constructor(
    real: RealPlane,
    nodes: readonly RealNode[],
    { arm, workload, modelled }: Pick<Row, 'arm' | 'workload' | 'modelled'>,
    { seconds = 90, atLeastMs = 0, evenIfAllServe = false }: ObserveOptions,
  ) {
    this.#real = real
    this.#nodes = nodes
    this.#arm = arm
    this.#workload = workload
    this.#expected = modelled
    this.#options = { seconds, atLeastMs, evenIfAllServe }
    this.#pods = podsOf(namespaceOf(workload))
  }

  async run(): Promise<Observed> {
    const mark = this.#real.audit.mark()
    const series = this.#series
    const began = await this.#act()
    const isMeasured = this.#workload.measured && this.#options.atLeastMs > 0
    const node = isMeasured ? await this.#usage() : undefined
    const untilMs = (began?.ms ?? 0) + this.#options.atLeastMs
    if (node !== undefined || series.ms < untilMs)
      this.#seen = await this.#settled(this.#expected, untilMs)
    const endMs = series.ms
    return {
      ...counted(this.#seen),
      settledMs: series.changes.at(-1)?.ms ?? 0,
      watchedMs: endMs,
      restarts: this.#seen.reduce((sum, each) => sum + each.restarts, 0),
      events: timesTold(await this.#list(eventsOf(namespaceOf(this.#workload))), this.#ids),
      writes: this.#real.audit.since(
        mark,
        this.#nodes.map(({ name }) => name),
      ),
      changes: series.changes,
      ...(began && {
        happened: happenedFrom(began.ms, began.change, { changes: series.changes, endMs }),
      }),
      ...(node && { node }),
    }
  }

  /** Has it happen; returns when what happens once all has settled began, and at which change. */
  async #act(): Promise<{ readonly ms: number; readonly change: number } | undefined> {
    const { happens, programs } = this.#workload
    await this.#create(early(this.#workload))
    if (happens === undefined) {
      this.#seen = await this.#settled(this.#expected)
      return undefined
    }
    this.#seen = await this.#settled(modelledBefore(this.#arm, this.#workload))
    const begun = { ms: this.#series.ms, change: this.#series.changes.length }
    switch (happens) {
      case 'one ends':
        await this.#delete(endingOf(this.#seen)?.name ?? '')
        break
      case 'update':
        await this.#update()
        break
      case 'reboot':
        await this.#reboot()
        break
      case 'switch off':
        for (const { hub } of this.#nodes) await hub.propagate('off')
    }
    await this.#create(programs.filter(({ late }) => late))
    this.#seen = await this.#settled(this.#expected)
    return begun
  }

  async #create(programs: readonly Program[]): Promise<void> {
    const { owner } = this.#workload
    const written = programs.map((program) => this.#arm.written(podOf(program)))
    const [first] = written
    if (owner && first) {
      const object = ownerOf(this.#workload, first)
      const { status, body } = await this.#real.plane.admin.post(
        ownersOf(owner.toLowerCase()),
        object,
      )
      if (status !== 201) throw new Error(`the ${owner} was answered ${status}`)
      this.#ids.add(textAt(JSON.parse(body.toString()) as Json, 'metadata', 'uid'))
      return
    }
    for (const [at, pod] of written.entries()) {
      const name = programs[at]?.name ?? ''
      const { status, body } = await this.#real.plane.admin.post(this.#pods, pod)
      if (status === 403 && breaksBaseline(JSON.parse(body.toString()) as Json)) {
        const fate = { outcome: 'Refused', misrepresented: false, remarks: [] } as const
        this.#refused.push({ ...fate, name, node: '', restarts: 0 })
        this.#series.see(name, 'Refused')
      } else if (status !== 201)
        throw new Error(`pod ${name} was answered ${status}: ${body.toString()}`)
    }
  }

  async #delete(name: string): Promise<void> {
    const { status } = await this.#real.plane.admin.send('DELETE', `${this.#pods}/${name}`)
    if (status !== 200) throw new Error(`the deletion of ${name} was answered ${status}`)
  }

  async #update(): Promise<void> {
    const template = { metadata: { labels: { [updated.key]: updated.value } } }
    const { admin } = this.#real.plane
    const path = `${ownersOf('deployment')}/each`
    const { status, body } = await admin.send(
      'PATCH',
      path,
      JSON.stringify({ spec: { template } }),
      'application/merge-patch+json',
    )
    if (status !== 200) throw new Error(`the update was answered ${status}`)
    const written = JSON.parse(body.toString()) as Json
    this.#isBehind = async () =>
      !hasTakenUp(JSON.parse((await admin.get(path)).body.toString()) as Json, written)
  }

  /** Of each node, whose pods then answer by what the node itself knows. */
  async #reboot(): Promise<void> {
    const served = this.#seen.filter(({ outcome }) => outcome === 'Serving')
    const nodes = this.#nodes.filter(({ name }) => this.#seen.some(({ node }) => node === name))
    for (const { name } of served) this.#series.see(name, 'Starting')
    await Promise.all(nodes.map((node) => node.rebootOffline()))
    const answering = new Set<string>()
    // As long as is looked for something to come: where they do not, it is counted so.
    const deadline = performance.now() + this.#options.seconds * 1000
    while (answering.size < served.length && performance.now() < deadline) {
      for (const node of nodes)
        for (const [pod, container] of await node.mainContainers()) {
          const program = this.#programOf(pod)
          if (answering.has(pod) || program === undefined) continue
          if ((await node.answerOf(container, program.listens)) !== pod) continue
          answering.add(pod)
          this.#series.see(pod, 'Serving')
        }
      await pause(lookMs)
    }
    this.#offline = answering
    this.#isBehind = async () => {
      const running = await Promise.all(nodes.map((node) => node.mainContainers()))
      const ids = new Map(running.flatMap((its) => [...its].map(([pod, { id }]) => [pod, id])))
      const told = this.#real.followed.pods(namespaceOf(this.#workload))
      return !served.every(({ name }) =>
        tellsOf(
          told.find((pod) => textAt(pod, 'metadata', 'name') === name),
          ids.get(name),
        ),
      )
    }
    await Promise.all(nodes.map((node) => node.mend()))
    for (const node of nodes)
      await until(
        `${node.name} to be heard of`,
        async () => {
          const path = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${node.name}`
          const { body } = await this.#real.plane.admin.get(path)
          const renewed = textAt(JSON.parse(body.toString()) as Json, 'spec', 'renewTime')
          return Date.parse(renewed) > Date.now() - 3_000
        },
        { seconds: 120 },
      )
  }

  #programOf(pod: string): Program | undefined {
    const { owner, programs } = this.#workload
    return owner ? programs[0] : programs.find(({ name }) => name === pod)
  }

  async #settled(expected: Expected, untilMs = 0): Promise<readonly SeenPod[]> {
    const { seconds, evenIfAllServe } = this.#options
    const began = performance.now()
    let last = ''
    let since = began
    for (;;) {
      const seen = await this.#lookAt(this.#real.followed.pods(namespaceOf(this.#workload)))
      const known = [...this.#refused, ...seen.filter((each) => each !== undefined)]
      const text = seen
        .map((each) => (each ? `${each.name} ${each.outcome} ${each.said}` : '?'))
        .join()
      const isWhole = !seen.includes(undefined) && known.length >= this.#fewest()
      const now = performance.now()
      if (text !== last || !isWhole || (await this.#isBehind())) since = now
      last = text
      if (now - since >= steadyMs) {
        const isOver = this.#series.ms >= untilMs || (!evenIfAllServe && known.every(isServing))
        if (isOver && isAsExpected(counted(known), expected)) return known
        if (now - began > seconds * 1000) return known
      }
      if (now - began > seconds * 3000)
        throw new Error(`the pods did not settle within ${seconds * 3} s: ${last}`)
      await this.#real.followed.changed(lookMs)
    }
  }

  /** The owner may not have made any yet. */
  #fewest(): number {
    return this.#workload.owner ? 1 : 0
  }

  /** What is seen of each; `undefined` where it has not come to anything yet. */
  async #lookAt(found: readonly Json[]): Promise<readonly (SeenPod | undefined)[]> {
    const containers = new Map(
      await Promise.all(
        this.#nodes.map(async (node) => [node.name, await node.mainContainers()] as const),
      ),
    )
    const seen = await Promise.all(
      found.map((pod) => {
        const node = this.#nodes.find(({ name }) => name === textAt(pod, 'spec', 'nodeName'))
        const container = node && containers.get(node.name)?.get(textAt(pod, 'metadata', 'name'))
        return this.#look(pod, node, container)
      }),
    )
    for (const pod of found) {
      this.#ids.add(textAt(pod, 'metadata', 'uid'))
      for (const owner of listAt(pod, 'metadata', 'ownerReferences'))
        this.#ids.add(textAt(owner, 'uid'))
    }
    const names = found.map((pod) => textAt(pod, 'metadata', 'name'))
    for (const [at, name] of names.entries()) {
      const outcome = seen[at]?.outcome
      const ends = isEnding(found[at]) && outcome !== 'Serving' && outcome !== 'Shared'
      this.#series.see(name, ends ? 'Gone' : (outcome ?? 'Starting'))
    }
    for (const { name } of this.#seen) if (!names.includes(name)) this.#series.see(name, 'Gone')
    // One that ends is nothing to count: it is to be gone first.
    return seen.map((each, at) => (isEnding(found[at]) ? undefined : each))
  }

  async #look(
    pod: Json,
    node?: RealNode,
    container?: RunningContainer,
  ): Promise<SeenPod | undefined> {
    const name = textAt(pod, 'metadata', 'name')
    const program = this.#programOf(name)
    if (program === undefined) return undefined
    const status = mainStatusOf(pod)
    const outcome = await this.#outcomeOf(pod, program, { node, container })
    if (outcome === undefined) return undefined
    const saysHost = valueAt(pod, 'spec', 'hostNetwork') === true
    const phase = textAt(pod, 'status', 'phase') as 'Pending' | 'Running' | 'Failed'
    return {
      name,
      node: node?.name ?? '',
      outcome,
      said: `${phase} on ${networkOf(saysHost)}`,
      misrepresented:
        node !== undefined &&
        isRunning(outcome) &&
        (container ? node.isInOwnNetwork(container) : seemsPropagated(pod)) !== saysHost,
      remarks: this.#remarksOn(pod, outcome, node),
      restarts: Number(valueAt(status, 'restartCount') ?? 0),
    }
  }

  #remarksOn(pod: Json, outcome: Outcome, node: RealNode | undefined): readonly Remark[] {
    const name = textAt(pod, 'metadata', 'name')
    const gives = this.#programOf(name)?.gives
    const remarks: Remark[] = []
    if (outcome === 'NotServing' && conditionOf(pod, 'Ready') === 'True')
      remarks.push('Ready without serving')
    if (gives !== undefined && node?.has(gives)) remarks.push("changed the node's network")
    if (outcome === 'Serving' && textAt(pod, 'metadata', 'labels', updated.key) === updated.value)
      remarks.push('of the new template')
    if (this.#offline.has(name)) remarks.push('served without a link')
    return remarks
  }

  async #outcomeOf(
    pod: Json,
    { listens, ifTaken }: Program,
    { node, container }: { node: RealNode | undefined; container: RunningContainer | undefined },
  ): Promise<Outcome | undefined> {
    const name = textAt(pod, 'metadata', 'name')
    if (node === undefined) {
      const unschedulable = listAt(pod, 'status', 'conditions').some(
        (condition) => textAt(condition, 'reason') === 'Unschedulable',
      )
      return unschedulable ? 'Unschedulable' : undefined
    }
    if (textAt(pod, 'status', 'phase') === 'Failed') return 'Failed'
    const status = mainStatusOf(pod)
    const waiting = textAt(status, 'state', 'waiting', 'reason')
    if (waiting === 'CrashLoopBackOff') return 'CrashLoop'
    const restarts = Number(valueAt(status, 'restartCount') ?? 0)
    const isIn = (state: string): boolean =>
      Object.keys(objectAt(status, 'state', state)).length > 0
    if (!isIn('running') && restarts === 0) {
      const failed = this.#real.followed
        .events(namespaceOf(this.#workload))
        .some(
          (event) =>
            textAt(event, 'reason') === 'FailedCreatePodSandBox' &&
            textAt(event, 'involvedObject', 'uid') === textAt(pod, 'metadata', 'uid'),
        )
      if (failed) return 'Stuck'
    }
    // Between two tries: nothing is settled by one that has just begun.
    if (isIn('terminated')) return restarts > 0 ? 'CrashLoop' : undefined
    if (!isIn('running')) return undefined
    const answers = new Set<string | undefined>()
    if (container)
      for (let at = 0; at < (ifTaken === 'shares' ? connections : 1); at += 1)
        answers.add(await node.answerOf(container, listens))
    if (answers.has(name)) return answers.size > 1 ? 'Shared' : 'Serving'
    // It has just been started again, to end again.
    return restarts > 0 && ifTaken === 'ends' ? 'CrashLoop' : 'NotServing'
  }

  /** Of a node while nothing happens and nothing is looked at, over some seconds. */
  async #usage(): Promise<NonNullable<Observed['node']>> {
    const left = this.#options.atLeastMs - this.#series.ms - steadyMs
    const seconds = Math.max(15, left / 1000)
    const before = this.#nodes.map(nodeUsage)
    await pause(seconds * 1000)
    const after = this.#nodes.map(nodeUsage)
    const mean = (of: (at: number) => number): number =>
      after.reduce((sum, _, at) => sum + of(at), 0) / after.length
    return {
      cores: mean((at) => ((after[at]?.cpuSeconds ?? 0) - (before[at]?.cpuSeconds ?? 0)) / seconds),
      megabytes: mean((at) => (after[at]?.memoryBytes ?? 0) / 1e6),
      hubMegabytes: mean((at) => (after[at]?.hubBytes ?? 0) / 1e6),
      hubSeconds: Math.round(mean((at) => after[at]?.hubSeconds ?? 0)),
    }
  }

  #list(path: string): Promise<readonly Json[]> {
    return listOf(this.#real, path)
  }
}

async function listOf({ plane }: RealPlane, path: string): Promise<readonly Json[]> {
  const list = JSON.parse((await plane.admin.get(path)).body.toString()) as JsonObject
  return listAt(list, 'items')
}

const isServing = ({ outcome }: SeenPod): boolean => outcome === 'Serving'

const isEnding = (pod: Json | undefined): boolean =>
  valueAt(pod, 'metadata', 'deletionTimestamp') !== undefined

const conditionOf = (pod: Json, type: string): string =>
  textAt(
    listAt(pod, 'status', 'conditions').find((each) => textAt(each, 'type') === type),
    'status',
  )

/** By its status, between two tries of its container: it has the address of the node. */
const seemsPropagated = (pod: Json): boolean =>
  textAt(pod, 'status', 'podIP') === textAt(pod, 'status', 'hostIP')

let started = 0

interface RealityOptions {
  /** Whether there is a third node, of no pool. */
  readonly mixed?: boolean
  /** OCI archives of what pods need beside busybox. */
  readonly images?: readonly string[]
  readonly yurthub?: string | undefined
}

/** Two nodes, each in a network of its own, as arms have them; if it is wanted, one of no pool. */
export async function startReality(
  t: Scope,
  real: RealPlane,
  kind: NodeKind,
  { mixed = false, images = [], yurthub }: RealityOptions = {},
): Promise<Reality> {
  const { admin } = real.plane
  started += 1
  const number = started
  const name = (role: string): string => `${role}-${number}`
  const ofNoPool = { hostNetworkNodes: false, podNetwork: true, hub: 'nodehub' } as const
  const [other, ...nodes] = await Promise.all([
    mixed
      ? startNode(t, real.plane, {
          name: name('elsewhere'),
          kind: ofNoPool,
          images,
          isElsewhere: true,
        })
      : undefined,
    ...['a', 'b'].map((role) =>
      startNode(t, real.plane, { name: name(role), kind, images, yurthub }),
    ),
  ])
  for (const each of [...nodes, ...(other ? [other] : [])]) {
    await nodeReady(admin, each.name)
    const { body } = await admin.get(`/api/v1/nodes/${each.name}`)
    const node = JSON.parse(body.toString()) as JsonObject
    const labelled = textAt(node, 'metadata', 'labels', hostNetworkLabel) === 'true'
    if (labelled !== (each !== other && kind.hostNetworkNodes))
      throw new Error(`admission passed ${each.name} by`)
  }
  return new Reality(real, nodes, other)
}
