import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  PortLedger,
  type LedgerOptions,
  type RecordedPod,
} from '../../../../src/hub/filter/host-network/ledger.ts'
import {
  VerdictStore,
  type VerdictStoreOptions,
} from '../../../../src/hub/filter/host-network/verdicts.ts'
import type { Inputs } from '../../../../src/hub/filter/inputs.ts'
import { podCursor, podObject, statuses } from '../../../kit/pods.ts'

/** A pod of the model, as the cloud has it. */
interface ModelPod {
  readonly name: string
  readonly ports: readonly number[]
  readonly createdAt: string
  /** Its spec requests the host's network. */
  readonly requestsHost?: boolean
  version: number
  /** The network on which its kubelet has started it. */
  runs?: 'host' | 'pod'
  ended: boolean
  deleting?: boolean
  /** Its condition HostNetworkPropagated is False. */
  refused: boolean
  readonly condition?: 'True'
}

/** Numbers from 0 up to `below`, the same for the same seed (mulberry32). */
function numbers(seed: number) {
  let state = seed
  return (below: number): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

const pool = { name: 'edge', type: 'Edge', hostNetwork: true, labels: {}, annotations: {} }

function recorded(pod: ModelPod): RecordedPod {
  const condition = pod.refused ? 'False' : pod.condition
  const object = podObject('json', pod.name, {
    metadata: {
      creationTimestamp: pod.createdAt,
      resourceVersion: String(pod.version),
      ...(pod.deleting && { deletionTimestamp: pod.createdAt }),
    },
    spec: {
      ...(pod.requestsHost && { hostNetwork: true }),
      containers: [
        { name: 'main', image: 'main', ports: pod.ports.map((port) => ({ containerPort: port })) },
      ],
    },
    status: {
      phase: pod.ended ? 'Succeeded' : pod.runs ? 'Running' : 'Pending',
      ...(pod.runs === 'host' ? statuses.onHost : {}),
      ...(pod.runs === 'pod' ? statuses.onPodNetwork : {}),
      conditions: condition ? [{ type: 'HostNetworkPropagated', status: condition }] : [],
    },
  })
  return { cursor: podCursor('json', object), uid: pod.name, resourceVersion: String(pod.version) }
}

interface Opened {
  readonly verdicts: VerdictStore
  readonly ledger: PortLedger
}

type Surroundings = Pick<LedgerOptions, 'listeners' | 'stored' | 'onJudged' | 'onFailure'> &
  Pick<VerdictStoreOptions, 'shownBefore'>

/** The ledger of a hub that starts with these verdicts, in mode guarded unless another is given. */
function openLedger(
  file: string,
  { shownBefore, ...others }: Surroundings,
  propagation: Inputs['propagation'] = 'guarded',
): Opened {
  const verdicts = new VerdictStore(file, {
    shownBefore,
    onKept: () => undefined,
    onRevised: () => undefined,
    onFailure: others.onFailure,
  })
  verdicts.keep()
  const ledger = new PortLedger({ ...others, nodeName: 'node-1', verdicts, reserved: [] })
  ledger.follow({ propagation, pool })
  return { verdicts, ledger }
}

async function closeLedger({ verdicts, ledger }: Opened): Promise<void> {
  ledger[Symbol.dispose]()
  await verdicts[Symbol.asyncDispose]()
}

for (const seed of [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]) {
  void t.test(
    `no port has two holders, whatever comes, goes and is lost: seed ${seed}`,
    async (t) => {
      const next = numbers(seed)
      const file = join(t.testdir(), 'host-network.json')
      const failures: unknown[] = []
      /** As the cloud has them. */
      const pods = new Map<string, ModelPod>()
      /** As the store has them: what was accepted later is lost with the process. */
      const committed = new Map<string, RecordedPod>()
      let committedVersion = 10
      let pending: { readonly pod: RecordedPod; readonly isGone: boolean }[] = []
      /** Ports with a program of the host. */
      let inUse: ReadonlySet<string> = new Set()
      const open = (propagation: Inputs['propagation'] = 'guarded') =>
        openLedger(
          file,
          {
            shownBefore: () => committed.keys(),
            listeners: () => inUse,
            stored: () => ({ pods: committed.values(), version: String(committedVersion) }),
            onJudged: ({ uid }, { verdict }) => {
              const pod = pods.get(uid)
              if (pod) pod.refused = verdict === 'refused'
            },
            onFailure: (cause) => failures.push(cause),
          },
          propagation,
        )
      let mode: Inputs['propagation'] = 'guarded'
      let { verdicts, ledger } = open()
      const commit = (): void => {
        for (const { pod, isGone } of pending) {
          if (isGone) committed.delete(pod.uid)
          else committed.set(pod.uid, pod)
          committedVersion = Number(pod.resourceVersion)
        }
        pending = []
      }
      let version = committedVersion
      const change = (pod: ModelPod, isGone = false): void => {
        pod.version = ++version
        if (isGone) pods.delete(pod.name)
        const event = { pod: recorded(pod), isGone }
        pending.push(event)
        ledger.changed([event])
      }
      const onHost = (pod: ModelPod): boolean =>
        pod.requestsHost === true ||
        verdicts.of(pod.name) === 'propagated' ||
        // Where a verdict is lost in another mode, the filter goes by the status.
        (mode !== 'guarded' && verdicts.of(pod.name) === undefined && pod.runs === 'host')
      let earlier: ReadonlySet<ModelPod> = new Set()
      const isShown = (pod: ModelPod): boolean => committed.has(pod.name)
      for (let step = 0; step < 200; step++) {
        const all = [...pods.values()]
        const some = all[next(Math.max(all.length, 1))]
        const act = next(10)
        if (act < 3 || !some) {
          const createdAt = new Date(1_700_000_000_000 + next(1000) * 1000).toISOString()
          const first = next(3)
          const ports = [8000 + first, ...(next(3) === 0 ? [8000 + ((first + 1) % 3)] : [])]
          const requestsHost = next(6) === 0
          const made = { version, ended: false, refused: false }
          const pod = { ...made, name: `p${step}`, ports, createdAt, requestsHost }
          pods.set(pod.name, pod)
          change(pod)
        } else if (act === 3) {
          // A kubelet starts what it was shown.
          if (isShown(some)) {
            // As the filter does in another mode.
            if (mode !== 'guarded')
              await verdicts.settle([[some.name, onHost(some) ? 'propagated' : 'unchanged']])
            if (onHost(some)) some.runs ??= 'host'
            else if (next(4) === 0) some.runs ??= 'pod'
          }
          change(some)
        } else if (act === 4) {
          some.ended = true
          change(some)
        } else if (act === 5) {
          const isGone = some.deleting === true || next(2) === 0
          some.deleting = true
          change(some, isGone)
        } else if (act === 6) {
          await closeLedger({ verdicts, ledger })
          let lost = pending
          if (next(2) === 0) {
            // What is lost with the file is made good by what the kubelet and the hub reported.
            commit()
            for (const pod of pods.values()) {
              if (onHost(pod)) pod.runs = 'host'
              committed.set(pod.name, recorded(pod))
            }
            lost = []
            rmSync(file, { force: true })
          }
          inUse = next(2) === 0 ? new Set() : new Set([`${8000 + next(3)}/TCP`])
          ;({ verdicts, ledger } = open(mode))
          // Sent again by the watch, which goes on from the last commit.
          pending = lost
          for (const event of lost) ledger.changed([event])
        } else if (act === 7) {
          mode = mode === 'guarded' ? (next(2) === 0 ? 'off' : 'observe') : 'guarded'
          // Mode guarded begins with what is committed.
          if (mode === 'guarded') commit()
          ledger.follow({ propagation: mode, pool })
        } else if (act === 8) commit()
        else ledger.reconcile()
        const living = [...pods.values()].filter(({ ended }) => !ended)
        const isTaken = (port: number): boolean =>
          inUse.has(`${port}/TCP`) || living.some((pod) => pod.ports.includes(port) && onHost(pod))
        for (const port of [8000, 8001, 8002]) {
          const holders = living.filter((pod) => pod.ports.includes(port) && onHost(pod))
          // Those that request it take it as the scheduler has it, which knows no propagated pod.
          const propagated = holders.filter(({ requestsHost }) => !requestsHost)
          // After a crash a pod that was not committed may come again later than its rival.
          const isNew = act !== 6 && propagated.some((pod) => !earlier.has(pod))
          if (propagated.length > 1 || (isNew && holders.length > 1))
            t.fail(`step ${step}: ${holders.map(({ name }) => name).join(' ')}`)
        }
        earlier = new Set(living.filter(onHost))
        for (const pod of living) {
          const isFinal =
            pod.runs !== undefined || pod.deleting || verdicts.of(pod.name) === 'unchanged'
          if (mode === 'guarded' && !onHost(pod) && !isFinal && !pod.ports.some(isTaken))
            t.fail(`step ${step}: ${pod.name} is forgotten`)
          if (pod.runs && onHost(pod) !== (pod.runs === 'host')) t.fail(`step ${step}: ${pod.name}`)
        }
      }
      await closeLedger({ verdicts, ledger })
      t.strictSame(failures, [])
    },
  )
}

void t.test(
  'a verdict of a commit that a crash prevented gives way to a later holder',
  async (t) => {
    const file = join(t.testdir(), 'host-network.json')
    let inUse: ReadonlySet<string> = new Set(['8001/TCP'])
    const made = { version: 10, ended: false, refused: false }
    const both = { ...made, name: 'both', ports: [8000, 8001], createdAt: '2026-01-01T00:00:00Z' }
    const lost = { ...made, name: 'lost', ports: [8000], createdAt: '2026-01-02T00:00:00Z' }
    const open = () =>
      openLedger(file, {
        shownBefore: () => [],
        listeners: () => inUse,
        stored: () => ({ pods: [recorded(both)], version: '10' }),
        onJudged: () => undefined,
        onFailure: (cause) => t.fail(String(cause)),
      })
    const networks = ({ verdicts }: Opened) => ['both', 'lost'].map((uid) => verdicts.of(uid))
    const arrival = { pod: recorded({ ...lost, version: 11 }), isGone: false }
    const before = open()
    before.ledger.changed([arrival])
    t.strictSame(networks(before), ['refused', 'propagated'], 'a program of the host is in the way')
    await closeLedger(before)
    inUse = new Set()
    const later = open()
    later.ledger.changed([arrival])
    t.strictSame(networks(later), ['propagated', 'refused'], 'the older pod has the port by now')
    await closeLedger(later)
  },
)

void t.test('a watch that repeats the pods of before does not bring them back', async (t) => {
  const made = { ended: false, refused: false, createdAt: '2026-01-01T00:00:00Z', ports: [8000] }
  const before = { ...made, name: 'before', version: 10 }
  const opened = openLedger(join(t.testdir(), 'host-network.json'), {
    shownBefore: () => [],
    listeners: () => new Set(),
    stored: () => undefined,
    onJudged: () => undefined,
    onFailure: (cause) => t.fail(String(cause)),
  })
  opened.ledger.listed([recorded(before)], '10')
  opened.ledger.listed([], '12')
  opened.ledger.changed([{ pod: recorded(before), isGone: false }])
  opened.ledger.changed([{ pod: recorded({ ...made, name: 'after', version: 13 }), isGone: false }])
  t.equal(opened.verdicts.of('after'), 'propagated', 'its port has no holder')
  await closeLedger(opened)
})

void t.test(
  'a pod that another mode propagated gets a reason, unless it has a condition',
  async (t) => {
    const made = { version: 10, ended: false, refused: false, createdAt: '2026-01-01T00:00:00Z' }
    const pods = [
      { ...made, name: 'runs', ports: [8000], runs: 'host' as const },
      { ...made, name: 'starts', ports: [8001] },
      { ...made, name: 'told', ports: [8002], condition: 'True' as const },
    ]
    const shown = new Map<string, string>()
    const surroundings: Surroundings = {
      shownBefore: () => [],
      // Those that run listen.
      listeners: () => new Set(['8000/TCP', '8001/TCP', '8002/TCP']),
      stored: () => ({ pods: pods.map(recorded), version: '10' }),
      onJudged: ({ uid }, { verdict, reason }) => shown.set(uid, `${verdict} ${reason}`),
      onFailure: (cause) => t.fail(String(cause)),
    }
    const opened = openLedger(join(t.testdir(), 'host-network.json'), surroundings, 'on')
    await opened.verdicts.settle(pods.map(({ name }) => [name, 'propagated']))
    opened.ledger.follow({ propagation: 'guarded', pool })
    t.strictSame(Object.fromEntries(shown), {
      runs: 'propagated RunsOnHostNetwork',
      starts: 'propagated Propagated',
    })
    await closeLedger(opened)
  },
)
