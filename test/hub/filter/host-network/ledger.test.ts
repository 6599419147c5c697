import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { PortLedger, type RecordedPod } from '../../../../src/hub/filter/host-network/ledger.ts'
import { VerdictStore } from '../../../../src/hub/filter/host-network/verdicts.ts'
import { podCursor, podObject, statuses } from '../../../kit/pods.ts'

/** A pod of the model, as the cloud has it. */
interface ModelPod {
  readonly name: string
  readonly port: number
  readonly createdAt: string
  version: number
  /** The network on which its kubelet has started it. */
  runs?: 'host' | 'pod'
  ended: boolean
  /** Its condition HostNetworkPropagated. */
  refused: boolean
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
  const object = podObject('json', pod.name, {
    metadata: { creationTimestamp: pod.createdAt, resourceVersion: String(pod.version) },
    spec: { containers: [{ name: 'main', image: 'main', ports: [{ containerPort: pod.port }] }] },
    status: {
      phase: pod.ended ? 'Succeeded' : pod.runs ? 'Running' : 'Pending',
      ...(pod.runs === 'host' ? statuses.onHost : {}),
      ...(pod.runs === 'pod' ? statuses.onPodNetwork : {}),
      conditions: pod.refused ? [{ type: 'HostNetworkPropagated', status: 'False' }] : [],
    },
  })
  return { cursor: podCursor('json', object), uid: pod.name, resourceVersion: String(pod.version) }
}

for (const seed of [1, 2, 3, 4, 5, 6]) {
  void t.test(
    `no port has two holders, whatever comes, goes and is lost: seed ${seed}`,
    async (t) => {
      const next = numbers(seed)
      const file = join(t.testdir(), 'host-network.json')
      const failures: unknown[] = []
      const pods = new Map<string, ModelPod>()
      const open = () => {
        const verdicts = new VerdictStore(file, {
          shownBefore: () => pods.keys(),
          onKept: () => undefined,
          onRevised: () => undefined,
          onFailure: (cause) => failures.push(cause),
        })
        verdicts.keep()
        const ledger = new PortLedger({
          nodeName: 'node-1',
          verdicts,
          reserved: [],
          listeners: () => new Set(),
          stored: () => [...pods.values()].map(recorded),
          onJudged: ({ uid }, { verdict }) => {
            const pod = pods.get(uid)
            if (pod) pod.refused = verdict === 'refused'
          },
          onFailure: (cause) => failures.push(cause),
        })
        ledger.follow({ propagation: 'guarded', pool })
        return { verdicts, ledger }
      }
      let { verdicts, ledger } = open()
      const close = async (): Promise<void> => {
        ledger[Symbol.dispose]()
        await verdicts[Symbol.asyncDispose]()
      }
      let version = 10
      const change = (pod: ModelPod, isGone = false): void => {
        pod.version = ++version
        if (isGone) pods.delete(pod.name)
        ledger.changed([{ pod: recorded(pod), isGone }])
      }
      const onHost = (pod: ModelPod): boolean => verdicts.of(pod.name) === 'propagated'
      for (let step = 0; step < 120; step++) {
        const all = [...pods.values()]
        const some = all[next(Math.max(all.length, 1))]
        const act = next(8)
        if (act < 3 || !some) {
          const createdAt = new Date(1_700_000_000_000 + next(1000) * 1000).toISOString()
          const port = 8000 + next(3)
          const pod = { name: `p${step}`, port, createdAt, version, ended: false, refused: false }
          pods.set(pod.name, pod)
          change(pod)
        } else if (act === 3) {
          if (onHost(some)) some.runs ??= 'host'
          else if (next(4) === 0) some.runs ??= 'pod'
          change(some)
        } else if (act === 4) {
          some.ended = true
          change(some)
        } else if (act === 5) change(some, true)
        else if (act === 6) {
          await close()
          // What is lost with the file is made good by what the kubelet has said.
          if (next(2) === 0) {
            for (const pod of pods.values()) if (onHost(pod)) pod.runs = 'host'
            rmSync(file, { force: true })
          }
          ;({ verdicts, ledger } = open())
        } else {
          ledger.follow({ propagation: 'off', pool })
          ledger.follow({ propagation: 'guarded', pool })
        }
        const living = [...pods.values()].filter(({ ended }) => !ended)
        for (const port of [8000, 8001, 8002]) {
          const here = living.filter((pod) => pod.port === port)
          const holders = here.filter(onHost)
          if (holders.length > 1)
            t.fail(`step ${step}: ${holders.map(({ name }) => name).join(' ')}`)
          const waiting = here.filter((pod) => !onHost(pod) && !pod.runs)
          if (holders.length === 0 && waiting.length > 0)
            t.fail(`step ${step}: ${port} is forgotten`)
        }
        for (const pod of living) {
          if (pod.runs && onHost(pod) !== (pod.runs === 'host')) t.fail(`step ${step}: ${pod.name}`)
        }
      }
      await close()
      t.strictSame(failures, [])
    },
  )
}
