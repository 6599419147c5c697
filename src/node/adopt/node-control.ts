import { elapsed, soon } from '../../base/clock.ts'
import { messageOf } from '../../config/settings.ts'
import type { HubRunner } from '../join/hub-files.ts'
import { answersWell, hubIsReady, runLine } from '../join/kubelet-service.ts'
import type { NodeFiles } from '../join/node-files.ts'
import { portListeners } from '../join/port-listeners.ts'
import { podLogCommand, type HubPorts } from '../join/static-pod.ts'
import { reloadUnits, startHub, stopHub } from '../join/systemd-units.ts'
import type { ApiClient } from '../join/pool-membership.ts'
import { isNodeReady, leaseVersion } from './cluster-view.ts'
import type { NodeControl } from './swap.ts'

export interface SupervisedNode {
  readonly files: NodeFiles
  readonly rootDir: string
  readonly runBy: HubRunner
  /** Whether systemd runs yurthub. */
  readonly isUnit: boolean
  readonly ports: HubPorts
  readonly nodeName: string
  /** Absent where only a roll back is to be done. */
  readonly cluster?: ApiClient
  /** How long each wait may take. */
  readonly timeoutMs: number
}

/** A kubelet ends the pod of a removed manifest within its grace period, after it has noticed. */
const endingMs = 90_000

/** The supervisors of this node: systemd, and the kubelet by the files of static pods. */
export function controlOf(node: SupervisedNode): NodeControl {
  const { isUnit, runBy, ports, timeoutMs } = node
  const bySystemd = 'systemd' in runBy
  const ran = (line: string, isMeant: boolean): Promise<string | undefined> =>
    isMeant ? runLine(line) : Promise.resolve(undefined)
  /** The Node's lease when yurthub, which renews it too, had ended. */
  let leaseBefore: string | undefined
  return {
    stopYurthub: () => ran(`${reloadUnits} && systemctl stop yurthub.service`, isUnit),
    startYurthub: () =>
      isUnit
        ? runLine(`${reloadUnits} && systemctl start yurthub.service`)
        : ran(reloadUnits, bySystemd),
    startHub: () => ran(startHub, bySystemd),
    stopHub: () => ran(stopHub, bySystemd),
    async portsFree(signal) {
      const holders = await listenersLeft(ports, Math.min(endingMs, timeoutMs), signal)
      if (signal?.aborted) return holders
      if (node.cluster)
        leaseBefore = await leaseVersion(node.cluster, node.nodeName).catch(() => undefined)
      return holders
    },
    ready: async (signal) => whyNotReady(node, leaseBefore, signal),
    async yurthubAnswers(signal) {
      const answers = async (): Promise<true | undefined> =>
        (await answersWell(ports.ops, '/v1/healthz')) || undefined
      return (await soon(timeoutMs, answers, signal)) === true
    },
  }
}

async function listenersLeft(
  ports: HubPorts,
  ms: number,
  signal: AbortSignal | undefined,
): Promise<readonly string[]> {
  let left: readonly string[] = []
  const look = (): Promise<true | undefined> => {
    const { byRoot, byOthers } = portListeners(ports)
    left = [...byRoot, ...byOthers]
    return Promise.resolve(left.length === 0 || undefined)
  }
  await soon(ms, look, signal)
  return left
}

/**
 * Why the hub or the Node is not ready in time; `undefined`: both are, and the kubelet has renewed
 * its lease through the hub.
 */
async function whyNotReady(
  { files, rootDir, runBy, ports, nodeName, cluster, timeoutMs }: SupervisedNode,
  leaseBefore: string | undefined,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  const begun = elapsed()
  const ca = files.text(`${rootDir}/pki/ca.crt`)
  const seconds = `${Math.round(timeoutMs / 1000)} s`
  if (!(await hubIsReady({ ports, ca }, timeoutMs, signal)))
    return `the hub is not ready after ${seconds}: ${'systemd' in runBy ? 'journalctl -u nodehub' : podLogCommand}`
  if (cluster === undefined) return undefined
  let why = 'it was not read'
  let first = leaseBefore
  const left = Math.max(timeoutMs - (elapsed() - begun), 0)
  const isReady = async (): Promise<true | undefined> => {
    try {
      if (!(await isNodeReady(cluster, nodeName))) {
        why = `Node ${nodeName} is not Ready`
        return undefined
      }
      const lease = await leaseVersion(cluster, nodeName)
      first ??= lease
      if (lease !== first) return true
      why = `the kubelet does not renew the lease of ${nodeName} through the hub`
    } catch (cause) {
      why = messageOf(cause)
    }
    return undefined
  }
  return (await soon(left, isReady, signal)) ? undefined : `${why} after ${seconds}`
}
