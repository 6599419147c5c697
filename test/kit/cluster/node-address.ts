import { execFileSync } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import type { Workspace } from './workspace.ts'

export interface NodeAddress {
  /**
   * On the loopback device, but not of 127.0.0.0/8, which a kubelet refuses as a node's address.
   */
  readonly address: string
  /** For this node's pods. */
  readonly podNetwork: string
}

/**
 * Adds an address of the network for benchmarks (RFC 2544) to the loopback device; the workspace's
 * reaper takes it away.
 */
export function addNodeAddress(workspace: Workspace, ip: string): NodeAddress {
  const taken = new Set(
    Object.values(networkInterfaces()).flatMap((each) =>
      (each ?? []).map(({ address }) => address),
    ),
  )
  const numbers = Array.from({ length: 254 }, (_, at) => at + 1)
  const free = numbers.filter((number) => !taken.has(`198.18.${number}.1`))
  const number = free[Math.floor(Math.random() * free.length)]
  if (number === undefined) throw new Error('every node address is taken')
  const address = `198.18.${number}.1`
  appendFileSync(workspace.file('addresses'), `${address}/32\n`)
  execFileSync(ip, ['addr', 'add', `${address}/32`, 'dev', 'lo'])
  return { address, podNetwork: `198.19.${number}.0/24` }
}
