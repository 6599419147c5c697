import { execFile } from 'node:child_process'
import { get } from 'node:http'
import { elapsed, pause, unlessClosed } from '../base/clock.ts'

/** Resolves to why systemd did not restart the kubelet; `undefined` when it did. */
export function restartKubelet(): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  execFile('systemctl', ['restart', 'kubelet'], { timeout: 120_000 }, (error, _, said) =>
    resolve(error ? said.trim() || error.message : undefined),
  )
  return promise
}

/** Whether a hub says within `ms` that it is ready. */
export async function hubIsReady(port: number, ms: number): Promise<boolean> {
  for (const begun = elapsed(); ;) {
    if (await isReady(port)) return true
    if (elapsed() - begun > ms) return false
    await pause(1000)
  }
}

function isReady(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const asking = get({ host: '127.0.0.1', port, path: '/readyz', agent: false }, (answer) => {
    answer.resume()
    resolve(answer.statusCode === 200)
  })
  asking.on('error', () => resolve(false))
  unlessClosed(asking, 5000, () => asking.destroy())
  return promise
}
