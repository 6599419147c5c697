import type { Logger } from 'pino'
import { now } from '../../base/clock.ts'
import { timeText } from '../../certificates/validity.ts'
import type { ClientCertificate } from '../../http/exchange/exchange.ts'
import type { Outage } from '../identity/caller.ts'
import type { Cloud } from '../upstream/cloud.ts'

/**
 * The state of an outage for authentication. Where all API servers refuse the hub's own
 * credentials, the node is answered as offline. Logs once an outage for each certificate out of its
 * dates that counts, and for none.
 */
export function outageOf(cloud: Cloud, log: Logger): Outage {
  const logged = new WeakMap<AbortSignal, Set<string>>()
  return {
    offline: async () => {
      await cloud.onlineKnown()
      return cloud.online === true ? cloud.refusal : cloud.onlineChanged
    },
    onOfflineNode: (outage, certificate) => {
      const known = logged.get(outage) ?? new Set()
      const shown = certificate?.fingerprint ?? ''
      if (known.has(shown)) return
      logged.set(outage, known.add(shown))
      log.warn({ clock: timeText(now()) }, outOfDateLine(certificate))
    },
  }
}

function outOfDateLine(certificate: ClientCertificate | undefined): string {
  if (!certificate)
    return 'a program of the node shows no certificate at the TLS port, as a kubelet whose own has expired: it is known by its socket until an API server answers'
  const { validFrom, validTo } = certificate
  return now() > validTo
    ? `the kubelet's certificate expired ${timeText(validTo)}: it counts until an API server answers`
    : `the kubelet's certificate is not valid before ${timeText(validFrom)}, and the clock runs behind: it counts until an API server answers`
}
