import { now } from '../../base/clock.ts'
import { joinHostPort } from '../../base/listening-sockets.ts'
import { waitsForNextStart } from '../../config/config-watcher.ts'
import type { StartConfig } from '../../config/hub-config.ts'
import type { Cloud } from '../upstream/cloud.ts'
import type { Upstream } from '../upstream/upstream.ts'
import type { ReadinessCheck } from '../../http/server/ops.ts'
import type { LogStore } from '../store/log/log-store.ts'
import type { OpenSocket } from './proxies.ts'

/** The faults of the hub, as readiness shows them. */
export class Health {
  #storeFailure: string | undefined
  #unusableConfig: string | undefined
  #waitingConfig: string | undefined
  #begunEmpty: string | undefined

  /**
   * Why the store takes no writes: the first failure since a write succeeded, as later ones only
   * repeat that it failed. `undefined` if the last write succeeded.
   */
  get storeFailure(): string | undefined {
    return this.#storeFailure
  }

  storeFailed(why: string): void {
    this.#storeFailure ??= why
  }

  storeWrote(): void {
    this.#storeFailure = undefined
  }

  /** Shown until the next start: the records for offline use are lost. */
  storeUnusable(): void {
    const at = new Date(now()).toISOString()
    this.#begunEmpty = `[ ]cache begun empty at ${at}: its log could not be used`
  }

  configUnusable(mistakes: readonly string[]): void {
    this.#unusableConfig = unusableLine('config', mistakes)
  }

  /** `waiting`: settings that differ from those in force until the next start. */
  configRead(waiting: readonly string[]): void {
    this.#unusableConfig = undefined
    this.#waitingConfig =
      waiting.length === 0 ? undefined : `[ ]config ${waitsForNextStart(waiting)}`
  }

  /** The checks that decide readiness. */
  checks(store: LogStore, { cachePath }: StartConfig, stopping: AbortSignal): ReadinessCheck[] {
    const misplaced = `${cachePath} was removed or replaced under the hub: what it records is lost with its process, start it again`
    return [
      {
        name: 'store',
        check: () => {
          if (this.#storeFailure !== undefined) return `${this.#storeFailure} (in ${cachePath})`
          return store.isInPlace() ? undefined : misplaced
        },
        remedy: () =>
          this.#storeFailure === undefined
            ? undefined
            : `df -h and df -i ${cachePath}, and dmesg: delete nothing in it; the hub goes on by itself`,
      },
      {
        name: 'shutdown',
        check: () => (stopping.aborted ? 'the hub is stopping' : undefined),
        remedy: () => 'journalctl -u nodehub says why, unless its supervisor starts it again',
      },
    ]
  }

  /**
   * Further lines for `/readyz?verbose` that do not affect readiness: offline, the hub is as ready
   * as ever.
   */
  verboseLines(cloud: Cloud, store: LogStore, sockets: readonly OpenSocket[]): string[] {
    return [
      onlineLine(cloud),
      ...cloud.upstreams.map(upstreamLine),
      ...(cloud.online === false ? oldestLine(store) : []),
      ...sockets.map(({ name, at }) => `[+]listening ${name} ${joinHostPort(at)}`),
      ...[this.#begunEmpty, this.#unusableConfig, this.#waitingConfig].filter(
        (line) => line !== undefined,
      ),
    ]
  }
}

/** The line for a configuration that cannot be used. */
export function unusableLine(what: string, mistakes: readonly string[]): string {
  const since = new Date(now()).toISOString()
  return `[ ]${what} unusable since ${since}, the last good one is in force: ${mistakes.join('; ')}`
}

function onlineLine({ online, since }: Cloud): string {
  if (online === undefined) return '[ ]cloud not probed yet'
  const from = new Date(since).toISOString()
  return online
    ? `[+]cloud online since ${from}`
    : `[ ]cloud offline since ${from}; serving the cache`
}

/** The resources with the oldest confirmations. */
function oldestLine(store: LogStore): string[] {
  const newest = new Map<string, number>()
  for (const { key, confirmedAt } of store.overview().collections.toReversed())
    newest.set(key.gvr.resource, confirmedAt)
  const oldest = [...newest]
    .toSorted(([, a], [, b]) => a - b)
    .slice(0, 3)
    .map(([resource, at]) => `${resource} since ${new Date(at).toISOString()}`)
  return oldest.length === 0 ? [] : [`[ ]cache longest unconfirmed: ${oldest.join(', ')}`]
}

function upstreamLine({ origin, health, availability, ejectedForMs, lastError }: Upstream): string {
  const mark = availability === 'ready' ? '[+]' : '[ ]'
  const last =
    availability === 'ejected'
      ? `, tried last for ${Math.ceil(ejectedForMs / 1000)} s: requests fail`
      : availability === 'unresponsive'
        ? ', tried last: it answers neither requests nor probes'
        : ''
  const why = lastError === undefined ? '' : `, last probe: ${lastError.message}`
  return `${mark}upstream ${origin} ${health}${last}${why}`
}
