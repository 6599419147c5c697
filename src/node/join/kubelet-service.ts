import { execFile } from 'node:child_process'
import { get } from 'node:http'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterUnlessClosed, soon } from '../../base/clock.ts'
import { wholeAnswer } from '../../base/whole-answer.ts'
import type { HubPorts } from './static-pod.ts'
import { restartUnit, systemdSocket } from './unit-restart.ts'

/**
 * Runs commands of a line (`a && b`), each once the one before has succeeded. Resolves to why one
 * failed; `undefined` on success. Its session is its own: a Ctrl-C is for this process, which may
 * have it finish.
 */
export async function runLine(line: string): Promise<string | undefined> {
  for (const [program = '', ...words] of line.split(' && ').map((each) => each.split(' '))) {
    const { promise, resolve } = Promise.withResolvers<string | undefined>()
    const options = { timeout: 120_000, detached: true }
    execFile(program, words, options, (error, _, said) =>
      resolve(error ? said.trim() || error.message : undefined),
    )
    const failed = await promise
    if (failed !== undefined) return failed
  }
  return undefined
}

/**
 * Resolves to why systemd did not restart the kubelet of this node, or of the host whose root is
 * mounted at `root`; `undefined` when it did.
 */
export const restartKubelet = (root = '/'): Promise<string | undefined> =>
  root === '/'
    ? runLine('systemctl restart kubelet')
    : restartUnit(join(root, systemdSocket), 'kubelet.service')

/** The hub as a kubelet finds it. */
interface ExpectedHub {
  readonly ports: HubPorts
  /** PEM: the CA of the hub. */
  readonly ca: string
}

/**
 * Whether a hub is ready within `ms`, and its TLS port has a certificate that the kubelet will
 * trust: any program can answer readiness.
 */
export async function hubIsReady(
  { ports, ca }: ExpectedHub,
  ms: number,
  signal?: AbortSignal,
): Promise<boolean> {
  const isReady = async (): Promise<true | undefined> =>
    ((await answersWell(ports.ops, '/readyz')) && (await isTrusted(ports.secure, ca))) || undefined
  return (await soon(ms, isReady, signal)) === true
}

/** Whether a request to this port of loopback is answered 200. */
export async function answersWell(port: number, path: string): Promise<boolean> {
  const asking = get({ host: '127.0.0.1', port, path, agent: false })
  const { status } = await wholeAnswer(asking, 5_000).catch(() => ({ status: 0 }))
  return status === 200
}

/** Whether `ca` signed the certificate at this port of loopback. */
function isTrusted(port: number, ca: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const hub = { host: '127.0.0.1', port }
  const socket = connect({ ...hub, ca, allowPartialTrustChain: true }, () => resolve(true))
  socket.on('error', () => resolve(false)).on('close', () => resolve(false))
  afterUnlessClosed(socket, 5000, () => socket.destroy())
  return promise.finally(() => socket.destroy())
}
