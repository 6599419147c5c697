import type { Logger } from 'pino'
import { now } from '../../base/clock.ts'
import { timeText } from '../../certificates/validity.ts'
import type { ClientCertificate } from '../../http/exchange/exchange.ts'
import type { Outage } from '../identity/caller.ts'
import type { SqliteStore } from '../store/sqlite/sqlite-store.ts'
import type { Cloud } from '../upstream/cloud.ts'

interface Dependencies {
  readonly cloud: Cloud
  readonly store: Pick<SqliteStore, 'confirmations'>
  readonly log: Logger
}

/**
 * What authentication knows of an outage. Where all API servers refuse the hub's own credentials,
 * the node is answered as offline. Logs once an outage that a certificate out of its dates counts.
 */
export function outageOf({ cloud, store, log }: Dependencies): Outage {
  const logged = new WeakSet<AbortSignal>()
  return {
    offline: async () => {
      await cloud.onlineKnown()
      return cloud.online === true ? cloud.refusal : cloud.onlineChanged
    },
    lastContact: () => store.confirmations().at(-1)?.confirmedAt,
    onOfflineNode: (outage, certificate) => {
      if (logged.has(outage)) return
      logged.add(outage)
      log.warn({ clock: timeText(now()) }, outOfDateLine(certificate))
    },
  }
}

const outOfDateLine = ({ validFrom, validTo }: ClientCertificate): string =>
  now() > validTo
    ? `the kubelet's certificate expired ${timeText(validTo)}: it counts until an API server answers`
    : `the kubelet's certificate is not valid before ${timeText(validFrom)}, and the clock runs behind the records: it counts until an API server answers`
