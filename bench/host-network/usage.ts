import { readdirSync, readFileSync } from 'node:fs'
import { secondsSinceStart, usageOf } from '../measure/process-usage.ts'
import type { RealNode } from './node.ts'

/** What the programs of a node use: hub, kubelet, containerd, its shims and their containers. */
export interface NodeUsage {
  /** CPU seconds so far. */
  readonly cpuSeconds: number
  /** Resident memory that is of no file. */
  readonly memoryBytes: number
  /** Of these, the hub's. */
  readonly hubBytes: number
  /** How long the hub has been running. */
  readonly hubSeconds: number
}

export function nodeUsage({ hub, kubelet }: RealNode): NodeUsage {
  const roots = [kubelet.daemon.id, kubelet.runtime.daemon.id, ...shimsOf(kubelet.runtime.socket)]
  const its = usageOf(hub.daemon.id)
  const usages = [its, ...roots.flatMap(usageWhileItRuns)]
  return {
    cpuSeconds: usages.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0),
    memoryBytes: usages.reduce((sum, { anonymousBytes }) => sum + anonymousBytes, 0),
    hubBytes: its.anonymousBytes,
    hubSeconds: secondsSinceStart(hub.daemon.id),
  }
}

function usageWhileItRuns(id: number) {
  try {
    return [usageOf(id)]
  } catch {
    return []
  }
}

/** A pod's shim outlives its containerd, and is no child of it; it is given its socket. */
const shimsOf = (socket: string): readonly number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((id) => {
      try {
        const [command = '', ...args] = readFileSync(`/proc/${id}/cmdline`, 'utf8').split('\0')
        return command.includes('containerd-shim') && args.includes(socket)
      } catch {
        return false
      }
    })
    .map(Number)
