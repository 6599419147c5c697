import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  mostPods,
  PortLedger,
  type RecordedPod,
} from '../../../../src/hub/filter/host-network/ledger.ts'
import { hostnetworkpropagation } from '../../../../filters/hostnetworkpropagation.ts'
import { VerdictStore } from '../../../../src/hub/filter/host-network/verdicts.ts'
import { podCursor, podObject } from '../../../kit/pods.ts'
import { rootFolder } from '../../../kit/root-folder.ts'

const pool = { name: 'edge', type: 'Edge', hostNetwork: true, labels: {}, annotations: {} }

function recorded(name: string, phase: string): RecordedPod {
  const object = podObject('json', name, { status: { phase } })
  return { cursor: podCursor('json', object), uid: name, resourceVersion: '7' }
}

function ledgerIn(t: Test): PortLedger {
  const failed = (cause: unknown): void => void t.fail(String(cause))
  const verdicts = new VerdictStore(join(rootFolder(t), 'host-network.json'), {
    shownBefore: () => [],
    onKept: () => undefined,
    onRevised: () => undefined,
    onFailure: failed,
  })
  verdicts.keep()
  const ledger = new PortLedger({
    nodeName: 'node-1',
    verdicts,
    reserved: [],
    listeners: () => new Set(),
    stored: () => ({ pods: [], version: '1' }),
    onJudged: () => undefined,
    onFailure: failed,
  })
  t.teardown(() => ledger[Symbol.dispose]())
  ledger.follow({ propagation: 'guarded', pool })
  return ledger
}

const many = (phase: string): RecordedPod[] =>
  Array.from({ length: mostPods }, (_, at) => recorded(`pod-${at}`, phase))

/** What the kubelet is shown of a list, by the verdict on each pod. */
async function shown(ledger: PortLedger, pods: readonly RecordedPod[]): Promise<unknown[]> {
  const definition = hostnetworkpropagation(ledger, 'guarded')
  const inputs = {
    nodeName: 'node-1',
    propagation: 'guarded',
    propagatedLater: undefined,
    pool,
  } as const
  const made = definition.create(inputs, () => undefined)
  if (!made || !('before' in made)) throw new Error('the filter does nothing')
  await made.before(pods)
  return pods.map(({ cursor }) => (made.filter(cursor) === 'leave' ? 'unchanged' : 'propagated'))
}

void t.test('a pod beyond those that the ledger keeps stays as the API has it', async (t) => {
  const ledger = ledgerIn(t)
  const pods = [...many('Pending'), recorded('last', 'Pending')]
  const looks = await shown(ledger, pods)
  t.strictSame(new Set(looks.slice(0, -1)), new Set(['propagated']))
  t.equal(looks.at(-1), 'unchanged')
  t.strictSame(await shown(ledger, pods), looks, 'the next list is as the first')
})

void t.test('pods that have ended take no room from others', async (t) => {
  const ledger = ledgerIn(t)
  const pods = [...many('Failed'), recorded('last', 'Pending')]
  const looks = await shown(ledger, pods)
  t.strictSame(new Set(looks.slice(0, -1)), new Set(['unchanged']))
  t.equal(looks.at(-1), 'propagated')
})
