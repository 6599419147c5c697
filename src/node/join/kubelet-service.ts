import { execFile } from 'node:child_process'
import { get } from 'node:http'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterUnlessClosed, soon } from '../../base/clock.ts'
import type { HubPorts } from './static-pod.ts'
import { restartUnit, systemdSocket } from './unit-restart.ts'

/** Resolves to the reason why systemctl failed; `undefined` on success. */
export const systemctl = (...words: readonly string[]): Promise<string | undefined> =>
  runCommand('systemctl', ...words)

/**
 * Resolves to the reason why a command failed; `undefined` on success. Its session is its own: a
 * Ctrl-C is for this process, which may have it finish.
 */
export function runCommand(
  command: string,
  ...words: readonly string[]
): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  const options = { timeout: 120_000, detached: true }
  execFile(command, words, options, (error, _, said) =>
    resolve(error ? said.trim() || error.message : undefined),
  )
  return promise
}

/**
 * Resolves to why systemd did not restart the kubelet of this node, or of the host whose root is
 * mounted at `root`; `undefined` when it did.
 */
export const restartKubelet = (root = '/'): Promise<string | undefined> =>
  root === '/'
    ? systemctl('restart', 'kubelet')
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
export function answersWell(port: number, path: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const asking = get({ host: '127.0.0.1', port, path, agent: false }, (answer) => {
    answer.resume()
    resolve(answer.statusCode === 200)
  })
  asking.on('error', () => resolve(false))
  afterUnlessClosed(asking, 5000, () => asking.destroy())
  return promise
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
