import type { Logger } from 'pino'
import { Broadcast } from '../../../base/broadcast.ts'
import type { Credentials } from '../../../config/credentials.ts'
import type { HubConfig, LiveConfig } from '../../../config/hub-config.ts'
import { Connections } from '../../../http/client/connections.ts'
import { loadCredentials } from '../../../http/client/credential-follower.ts'
import type { DynamicServingCredentials } from '../../../http/server/dynamic-serving-credentials.ts'
import type { ServingCredentials } from '../../../http/server/listener.ts'
import type { HubMetrics } from '../../../metrics/metrics.ts'
import type { Cloud } from '../../upstream/cloud.ts'
import { cloudOf, reconfigureCloud } from '../cloud.ts'
import {
  followHubCredentials,
  logCertificateFault,
  servingOf,
  ObtainedCertificate,
} from '../credentials.ts'
import { KnownCluster } from '../../upstream/known-cluster.ts'

interface Dependencies {
  readonly metrics: HubMetrics
  readonly log: Logger
}

/** The API servers, and the hub's own credentials. */
export interface CloudParts extends AsyncDisposable {
  readonly cloud: Cloud
  readonly cluster: KnownCluster
  readonly connections: Connections
  /** The certificates of the TLS listener. */
  readonly serving: DynamicServingCredentials
  /** The client certificate that the hub requests for itself. */
  readonly obtained: ObtainedCertificate
  readonly onlineChanged: Broadcast<[boolean]>
  readonly credentialsReplaced: Broadcast<[Credentials]>
  readonly servingReplaced: Broadcast<[ServingCredentials]>
  reconfigure(next: LiveConfig): void
}

/** Reads the hub's credentials, and probes the API servers from now on. */
export async function openCloud(
  config: HubConfig,
  live: () => LiveConfig,
  { metrics, log }: Dependencies,
): Promise<CloudParts> {
  await using parts = new AsyncDisposableStack()
  const credentials = loadCredentials(config.credentials)
  logCertificateFault(credentials, log)
  const servingReplaced = new Broadcast<[ServingCredentials]>()
  const serving = parts.use(
    await servingOf(config, credentials.ca, (changed) => servingReplaced.announce(changed), log),
  )
  const connections = parts.use(new Connections(credentials))
  const onlineChanged = new Broadcast<[boolean]>()
  const cluster = new KnownCluster(connections, log)
  const onOnline = (online: boolean): void => onlineChanged.announce(online)
  const cloud = parts.use(cloudOf(live, { connections, cluster, metrics, log, onOnline }))
  const credentialsReplaced = new Broadcast<[Credentials]>()
  const follower = parts.use(
    followHubCredentials(
      config,
      credentials,
      (changed) => credentialsReplaced.announce(changed),
      log,
    ),
  )
  credentialsReplaced.listen((changed) => connections.replaceCredentials(changed))
  credentialsReplaced.listen(() => cloud.credentialsReplaced())
  credentialsReplaced.listen(({ ca }) => serving.replaceUpstreamCa(ca))
  const onStored = (): void => follower.check()
  const obtained = parts.use(new ObtainedCertificate(config, live, { cloud, onStored, log }))
  parts.use(onlineChanged.listen((online) => online && obtained.wake()))
  const open = parts.move()
  return {
    cloud,
    cluster,
    connections,
    serving,
    obtained,
    onlineChanged,
    credentialsReplaced,
    servingReplaced,
    reconfigure: (next) => {
      reconfigureCloud(cloud, next)
      follower.move(next.credentials)
      obtained.reconfigure()
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}
