import { elapsed, pause } from '../../base/clock.ts'
import { messageOf } from '../../config/settings.ts'
import { forgetUnits, startHub, stopHub } from '../join/hub-service.ts'
import type { HubRunner } from '../join/hub-files.ts'
import { answersWell, hubIsReady, systemctl } from '../join/kubelet-service.ts'
import type { NodeFiles } from '../join/node-files.ts'
import { portListeners } from '../join/port-listeners.ts'
import { podLogCommand, type HubPorts } from '../join/static-pod.ts'
import type { ClusterView } from './cluster-view.ts'
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
  readonly cluster?: ClusterView
  /** How long each wait may take. */
  readonly timeoutMs: number
}

const betweenMs = 500

/** A kubelet ends the pod of a removed manifest within its grace period, after it has noticed. */
const endingMs = 90_000

/** The supervisors of this node: systemd, and the kubelet by the files of static pods. */
export function controlOf(node: SupervisedNode): NodeControl {
  const { isUnit, runBy, ports, timeoutMs } = node
  const bySystemd = 'systemd' in runBy
  const nothing = Promise.resolve(undefined)
  /** The Node's lease when yurthub, which renews it too, had ended. */
  let leaseBefore: string | undefined
  return {
    stopYurthub: async () =>
      isUnit ? ((await forgetUnits()) ?? systemctl('stop', 'yurthub.service')) : undefined,
    startYurthub: async () =>
      isUnit
        ? ((await forgetUnits()) ?? systemctl('start', 'yurthub.service'))
        : bySystemd
          ? forgetUnits()
          : undefined,
    startHub: () => (bySystemd ? startHub() : nothing),
    stopHub: () => (bySystemd ? stopHub() : nothing),
    async portsFree() {
      const holders = await listenersLeft(ports, Math.min(endingMs, timeoutMs))
      leaseBefore = await node.cluster?.leaseVersion(node.nodeName).catch(() => undefined)
      return holders
    },
    ready: async () => whyNotReady(node, leaseBefore),
    yurthubAnswers: () =>
      soon(timeoutMs, async () => (await answersWell(ports.ops, '/v1/healthz')) || undefined).then(
        (answered) => answered === true,
      ),
  }
}

async function listenersLeft(ports: HubPorts, ms: number): Promise<readonly string[]> {
  let left: readonly string[] = []
  await soon(ms, () => {
    const { byRoot, byOthers } = portListeners(ports)
    left = [...byRoot, ...byOthers]
    return Promise.resolve(left.length === 0 || undefined)
  })
  return left
}

/**
 * Why the hub or the Node is not ready in time; `undefined`: both are, and the kubelet has renewed
 * its lease through the hub.
 */
async function whyNotReady(
  { files, rootDir, runBy, ports, nodeName, cluster, timeoutMs }: SupervisedNode,
  leaseBefore: string | undefined,
): Promise<string | undefined> {
  const begun = elapsed()
  const ca = files.text(`${rootDir}/pki/ca.crt`)
  const seconds = `${Math.round(timeoutMs / 1000)} s`
  if (!(await hubIsReady({ ports, ca }, timeoutMs)))
    return `the hub is not ready after ${seconds}: ${'systemd' in runBy ? 'journalctl -u nodehub' : podLogCommand}`
  if (cluster === undefined) return undefined
  let why = 'it was not read'
  let first = leaseBefore
  const left = Math.max(timeoutMs - (elapsed() - begun), 0)
  const isReady = await soon(left, async () => {
    try {
      if (!(await cluster.isReady(nodeName))) {
        why = `Node ${nodeName} is not Ready`
        return undefined
      }
      const lease = await cluster.leaseVersion(nodeName)
      first ??= lease
      if (lease !== first) return true
      why = `the kubelet does not renew the lease of ${nodeName} through the hub`
    } catch (cause) {
      why = messageOf(cause)
    }
    return undefined
  })
  return isReady ? undefined : `${why} after ${seconds}`
}

/** The first result of `attempt` but `undefined`; `undefined` after so long. */
async function soon<T>(ms: number, attempt: () => Promise<T | undefined>): Promise<T | undefined> {
  for (const begun = elapsed(); ;) {
    const result = await attempt()
    if (result !== undefined || elapsed() - begun >= ms) return result
    await pause(betweenMs)
  }
}
