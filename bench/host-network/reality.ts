import { hostNetworkLabel } from '../../src/api/kube/node-pool.ts'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import { valueAt, listAt, objectAt, textAt } from '../../src/api/kube/json-at.ts'
import { nodeReady } from '../../test/control-plane/seen.ts'
import { until } from '../../test/kit/until.ts'
import type { Scope } from '../../test/kit/cluster/workspace.ts'
import type { Arm } from './arms.ts'
import { modelled } from './model.ts'
import { type NodeKind, type RealNode, sharesNetwork, startNode } from './node.ts'
import {
  counted,
  type Fate,
  networkOf,
  type Outcome,
  type Result,
  type ReportedState,
  sameResult,
} from './outcome.ts'
import type { RealPlane } from './plane.ts'
import { Series } from './series.ts'
import type { Observed } from './observed.ts'
import type { Row } from './table.ts'
import { daemonSetOf, podOf, type Workload } from './workloads.ts'

const pods = '/api/v1/namespaces/default/pods'
const daemonSets = '/apis/apps/v1/namespaces/default/daemonsets'
const events = '/api/v1/namespaces/default/events'

/** So many looks in a row have to find the same: some seconds. */
const looks = 10

interface SeenPod extends Fate {
  readonly name: string
  /** '' where it is on none. */
  readonly node: string
  readonly restarts: number
}

/** A control plane, and nodes that arms are tried on; all end with the scope. */
export class Reality {
  readonly #real: RealPlane
  readonly #nodes: readonly RealNode[]

  constructor(real: RealPlane, nodes: readonly RealNode[]) {
    this.#real = real
    this.#nodes = nodes
  }

  /**
   * Creates a workload's pods as the arm has them, and looks at them until they have stayed as they
   * are for some seconds. Where that is not as `expected`, it looks on for `seconds`: what is still
   * to come may come late. Where it is, for `atLeastMs` in all: what is told and written again and
   * again can be compared then. Then removes them.
   */
  async observe(
    { arm, workload, modelled: expected }: Pick<Row, 'arm' | 'workload' | 'modelled'>,
    { seconds = 90, atLeastMs = 0 } = {},
  ): Promise<Observed> {
    this.#real.webhooks.propagate = arm.admitsToHostNetwork
    const mark = this.#real.audit.mark()
    const series = new Series()
    await this.#create(arm, workload)
    const before = workload.oneEnds ? modelled(arm, { ...workload, oneEnds: false }) : expected
    let seen = await this.#settled(workload, before, { seconds, series })
    if (workload.oneEnds) {
      const ending = endingOf(seen)
      await this.#remove(ending)
      series.see(ending, 'Gone')
      seen = await this.#settled(workload, expected, { seconds, series })
    }
    if (series.ms < atLeastMs)
      seen = await this.#settled(workload, expected, { seconds, series, atLeastMs })
    const observed = {
      ...counted(seen),
      settledMs: series.changes.at(-1)?.ms ?? 0,
      watchedMs: series.ms,
      restarts: seen.reduce((sum, each) => sum + each.restarts, 0),
      events: timesTold(await this.#list(events)),
      writes: this.#real.audit.since(
        mark,
        this.#nodes.map(({ name }) => name),
      ),
      changes: series.changes,
    }
    await this.#clear()
    return observed
  }

  async #create(arm: Arm, { programs, daemonSet }: Workload): Promise<void> {
    const written = programs.map((program) => arm.written(podOf(program)))
    const [first] = written
    if (daemonSet && first) return this.#post(daemonSets, daemonSetOf(first))
    for (const pod of written) await this.#post(pods, pod)
  }

  async #post(path: string, object: JsonObject): Promise<void> {
    const { status, body } = await this.#real.plane.admin.post(path, object)
    if (status !== 201) throw new Error(`an object was refused: ${status} ${body.toString()}`)
  }

  /** Takes its nodes out of the cluster, so that no pod of another arm is put on them. */
  async retire(): Promise<void> {
    for (const { name, kubelet } of this.#nodes) {
      await kubelet.daemon.kill()
      await this.#real.plane.admin.send('DELETE', `/api/v1/nodes/${name}`)
    }
  }

  async #settled(
    workload: Workload,
    expected: Result,
    { seconds, series, atLeastMs = 0 }: { seconds: number; series: Series; atLeastMs?: number },
  ): Promise<readonly SeenPod[]> {
    const deadline = performance.now() + seconds * 1000
    let last = ''
    let same = 0
    return until(
      'the pods to settle',
      async () => {
        const found = await this.#list(pods)
        const seen = await Promise.all(found.map((pod) => this.#look(pod, workload)))
        for (const [at, each] of seen.entries())
          series.see(textAt(found[at], 'metadata', 'name'), each?.outcome ?? 'Starting')
        const known = seen.filter((each) => each !== undefined)
        const text = seen
          .map((each) => (each ? `${each.name} ${each.outcome} ${each.said}` : '?'))
          .join()
        same = text === last && known.length === seen.length ? same + 1 : 0
        last = text
        if (same < looks) return false
        const isExpected = series.ms >= atLeastMs && sameResult(counted(known), expected)
        return (isExpected || performance.now() > deadline) && known
      },
      { seconds: seconds * 2, describe: () => last },
    )
  }

  async #look(pod: Json, { programs, daemonSet }: Workload): Promise<SeenPod | undefined> {
    const name = textAt(pod, 'metadata', 'name')
    const node = this.#nodes.find((each) => each.name === textAt(pod, 'spec', 'nodeName'))
    const program = daemonSet ? programs[0] : programs.find((each) => each.name === name)
    if (program === undefined) return undefined
    const [container] = listAt(pod, 'status', 'containerStatuses')
    const restarts = Number(valueAt(container, 'restartCount') ?? 0)
    const outcome = await this.#outcomeOf(pod, node, program.listens)
    if (outcome === undefined) return undefined
    const says = valueAt(pod, 'spec', 'hostNetwork') === true
    const runs = node && (await sharesNetwork(node, name))
    const misrepresented = runs !== undefined && outcome !== 'Stuck' && runs !== says
    const said = `${textAt(pod, 'status', 'phase')} on ${networkOf(says)}` as ReportedState
    return { name, node: node?.name ?? '', outcome, said, misrepresented, restarts }
  }

  /** `undefined` where it has not come to anything yet. */
  async #outcomeOf(
    pod: Json,
    node: RealNode | undefined,
    port: number,
  ): Promise<Outcome | undefined> {
    const name = textAt(pod, 'metadata', 'name')
    if (node === undefined) {
      const unschedulable = listAt(pod, 'status', 'conditions').some(
        (condition) => textAt(condition, 'reason') === 'Unschedulable',
      )
      return unschedulable ? 'Unschedulable' : undefined
    }
    if (textAt(pod, 'status', 'phase') === 'Failed') return 'Failed'
    const [container] = listAt(pod, 'status', 'containerStatuses')
    const waiting = textAt(container, 'state', 'waiting', 'reason')
    if (waiting === 'CrashLoopBackOff') return 'CrashLoop'
    // Between two tries: nothing is settled by one that has just begun.
    if (Object.keys(objectAt(container, 'state', 'terminated')).length > 0) {
      return Number(valueAt(container, 'restartCount') ?? 0) > 0 ? 'CrashLoop' : undefined
    }
    if (waiting === 'ContainerCreating') {
      const failed = (await this.#list(events)).some(
        (event) =>
          textAt(event, 'reason') === 'FailedCreatePodSandBox' &&
          textAt(event, 'involvedObject', 'uid') === textAt(pod, 'metadata', 'uid'),
      )
      return failed ? 'Stuck' : undefined
    }
    if (Object.keys(objectAt(container, 'state', 'running')).length === 0) return undefined
    const own = await sharesNetwork(node, name)
    const address = own === true ? '127.0.0.1' : textAt(pod, 'status', 'podIP')
    const answer = await node.network.fetch(`http://${address}:${port}/index.html`)
    if (answer?.trim() === name) return 'Serving'
    // It has just been started again, to end again.
    return Number(valueAt(container, 'restartCount') ?? 0) > 0 ? 'CrashLoop' : 'NotServing'
  }

  async #list(path: string): Promise<readonly Json[]> {
    const list = JSON.parse((await this.#real.plane.admin.get(path)).body.toString()) as JsonObject
    return listAt(list, 'items')
  }

  async #remove(name: string): Promise<void> {
    await this.#real.plane.admin.send('DELETE', `${pods}/${name}`)
    await until(`${name} to be gone`, async () =>
      (await this.#list(pods)).every((pod) => textAt(pod, 'metadata', 'name') !== name),
    )
  }

  async #clear(): Promise<void> {
    // First, lest they are made again.
    await this.#real.plane.admin.send('DELETE', daemonSets)
    await until(
      'what makes pods to be gone',
      async () => (await this.#list(daemonSets)).length === 0,
    )
    await this.#real.plane.admin.send('DELETE', `${pods}?gracePeriodSeconds=1`)
    await until(
      'everything to be gone',
      async () => {
        const running = await Promise.all(
          this.#nodes.map(({ kubelet }) => kubelet.runtime.running()),
        )
        return (await this.#list(pods)).length === 0 && running.flat().length === 0
      },
      { seconds: 90 },
    )
    await this.#real.plane.admin.send('DELETE', events)
  }
}

/** The pod that is deleted, by the same rule as in the model. */
function endingOf(seen: readonly SeenPod[]): string {
  const serving = seen.filter(({ outcome }) => outcome === 'Serving')
  const crowded = serving.find((pod) =>
    seen.some((other) => other !== pod && other.node === pod.node),
  )
  return (crowded ?? serving[0] ?? seen[0])?.name ?? ''
}

/** Of pods and what makes them, by reason; what was told again is counted in the event. */
function timesTold(list: readonly Json[]): Record<string, number> {
  const told: Record<string, number> = {}
  for (const event of list) {
    if (!['Pod', 'DaemonSet'].includes(textAt(event, 'involvedObject', 'kind'))) continue
    const times = Math.max(
      1,
      Number(valueAt(event, 'count') ?? 0),
      Number(valueAt(event, 'series', 'count') ?? 0),
    )
    const reason = textAt(event, 'reason')
    told[reason] = (told[reason] ?? 0) + times
  }
  return told
}

/**
 * Two nodes, each in a network of its own, as an arm has them; named so that no two arms share one.
 */
export async function startReality(t: Scope, real: RealPlane, kind: NodeKind): Promise<Reality> {
  const { admin } = real.plane
  const names = [0, 1].map(
    (number) => `${kind.propagates ? 'legacy' : kind.hostNetworkNodes ? 'host' : 'pod'}-${number}`,
  )
  const nodes = await Promise.all(names.map((name) => startNode(t, real.plane, name, kind)))
  for (const { name } of nodes) {
    await nodeReady(admin, name)
    const node = JSON.parse(
      (await admin.get(`/api/v1/nodes/${name}`)).body.toString(),
    ) as JsonObject
    const labelled = textAt(node, 'metadata', 'labels', hostNetworkLabel) === 'true'
    if (labelled !== kind.hostNetworkNodes) throw new Error(`admission passed ${name} by`)
  }
  return new Reality(real, nodes)
}
