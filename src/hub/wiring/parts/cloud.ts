import { Broadcast } from '../../../base/broadcast.ts'
import type { Credentials } from '../../../config/credentials.ts'
import type { LiveConfig } from '../../../config/hub-config.ts'
import { Connections } from '../../../http/client/connections.ts'
import { followCredentials, loadCredentials } from '../../../http/client/credential-follower.ts'
import type { ServingCredentials } from '../../../http/server/listener.ts'
import { KnownCluster } from '../../upstream/known-cluster.ts'
import { cloudOf, reconfigureCloud } from '../cloud.ts'
import type { HubContext } from '../hub-context.ts'
import { logCertificateFault, obtainedCertificateOf, servingOf } from '../credentials.ts'

/** How often the credential files are checked for changes. */
const lookMs = 5_000

/** The API servers, and the hub's own credentials. */
export type CloudParts = Awaited<ReturnType<typeof openCloud>>

/** Reads the hub's credentials, and probes the API servers from now on. */
export async function openCloud(context: HubContext) {
  const { config, log } = context
  await using parts = new AsyncDisposableStack()
  const credentials = loadCredentials(config.credentials)
  logCertificateFault(credentials, log)
  const servingReplaced = new Broadcast<[ServingCredentials]>()
  const serving = parts.use(await servingOf(context, credentials.ca, servingReplaced))
  const connections = parts.use(new Connections(credentials))
  const onlineChanged = new Broadcast<[boolean]>()
  const cluster = new KnownCluster(connections, log)
  const cloud = parts.use(cloudOf(context, { connections, cluster, onlineChanged }))
  const credentialsReplaced = new Broadcast<[Credentials]>()
  const follower = parts.use(
    followCredentials(
      config.credentials,
      credentials,
      lookMs,
      (changed) => {
        log.info('the credentials have changed')
        logCertificateFault(changed, log)
        credentialsReplaced.announce(changed)
      },
      (err) =>
        log.error(
          { err },
          'the credentials have changed and cannot be used; the last good ones stay',
        ),
    ),
  )
  credentialsReplaced.listen((changed) => connections.replaceCredentials(changed))
  credentialsReplaced.listen(() => cloud.credentialsReplaced())
  credentialsReplaced.listen(({ ca }) => serving.replaceUpstreamCa(ca))
  const obtained = parts.use(obtainedCertificateOf(context, cloud, () => follower.check()))
  parts.use(onlineChanged.listen((online) => online && obtained.wake()))
  const open = parts.move()
  return {
    cloud,
    cluster,
    connections,
    /** The certificates of the TLS listener. */
    serving,
    /** The client certificate that the hub requests for itself. */
    obtained,
    onlineChanged,
    credentialsReplaced,
    servingReplaced,
    reconfigure: (next: LiveConfig): void => {
      reconfigureCloud(cloud, next)
      follower.move(next.credentials)
      obtained.wake()
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}
