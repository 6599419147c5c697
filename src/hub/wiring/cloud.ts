import type { Broadcast } from '../../base/broadcast.ts'
import { now } from '../../base/clock.ts'
import type { Connections } from '../../http/client/connections.ts'
import { whyRefused } from '../../config/credential-faults.ts'
import type { LiveConfig } from '../../config/hub-config.ts'
import { Cloud, type CloudParts } from '../upstream/cloud.ts'
import { readyzProbe } from '../upstream/probe.ts'
import { Upstream } from '../upstream/upstream.ts'
import type { KnownCluster } from '../upstream/known-cluster.ts'
import type { HubContext } from './hub-context.ts'

interface CloudDependencies {
  readonly connections: Connections
  readonly cluster: KnownCluster
  readonly onlineChanged: Broadcast<[boolean]>
}

/**
 * The API servers of the configuration, probed from now on; their health goes to log and metrics.
 * Servers added later have the rules in force then.
 */
export function cloudOf(
  { live, metrics, log }: HubContext,
  { connections, cluster, onlineChanged }: CloudDependencies,
): Cloud {
  const isPresent = (origin: string): boolean =>
    cloud.upstreams.some((upstream) => upstream.origin === origin)
  const probe = cluster.comparing(readyzProbe(connections), isPresent)
  const build: CloudParts['build'] = (origin, onVerdict, onCredentials): Upstream =>
    new Upstream(origin, probe, live().heartbeat, {
      onHealth: ({ health, lastError }) => {
        // A failed probe is expected: log its message without a stack trace.
        const fields = { upstream: origin, health, lastProbe: lastError?.message }
        if (health === 'unhealthy') log.warn(fields, 'an API server is now unhealthy')
        else log.info(fields, `an API server is now ${health}`)
        onVerdict()
      },
      onEjected: (_upstream, forMs) => {
        const seconds = Math.round(forMs / 1000)
        log.warn({ upstream: origin, seconds }, 'requests fail at an API server: others go first')
      },
      onCredentials: ({ refusesCredentials }) => {
        const { awaited } = connections.credentials
        if (refusesCredentials && awaited) {
          log.warn(
            { upstream: origin },
            'an API server answers, and the hub has no client certificate yet: the node is answered from the cache, and 503 where that has no answer',
          )
        } else if (refusesCredentials) {
          const why = whyRefused(connections.credentials, now())
          log.error(
            { upstream: origin },
            `an API server does not accept the hub's credentials (401): ${why}; the node is answered from the cache, and 503 where that has no answer`,
          )
        } else
          log.info({ upstream: origin }, "an API server no longer refuses the hub's credentials")
        onCredentials()
      },
    })
  const cloud: Cloud = new Cloud({
    origins: originsOf(live()),
    build,
    mode: live().lbMode,
    onOnline: (online) => {
      metrics.online.set(online ? 1 : 0)
      if (online) log.info('online: an API server can be reached')
      else log.warn('offline: answering from the cache')
      if (!online) cluster.offline()
      onlineChanged.announce(online)
    },
    onGone: (origin) => connections.drop(origin),
  })
  return cloud
}

/**
 * Applies the API servers of another configuration, its load balancing and its rules for health.
 */
export function reconfigureCloud(cloud: Cloud, live: LiveConfig): void {
  cloud.replace(originsOf(live))
  cloud.balanceBy(live.lbMode)
  for (const upstream of cloud.upstreams) upstream.useRules(live.heartbeat)
}

const originsOf = ({ serverAddresses }: LiveConfig): string[] =>
  serverAddresses.map(({ origin }) => origin)
