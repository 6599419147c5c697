import { ownVersion } from '../../base/own-version.ts'
import type { ClusterClientConfig } from '../../config/cluster-config.ts'
import { openAccess } from './access.ts'
import { ApiServer, type ApiServerOptions } from './api-server.ts'

/** A connected API server; disposing closes the connections. */
export interface ConnectedApi extends AsyncDisposable {
  readonly api: ApiServer
  readonly server: URL
}

/** Reads the credentials and sends nothing yet. Throws where they cannot be read. */
export async function connect(
  { access: where }: ClusterClientConfig,
  onRequest?: ApiServerOptions['onRequest'],
): Promise<ConnectedApi> {
  const access = await openAccess(where)
  const api = new ApiServer(access, {
    userAgent: `nodehub-cluster/${ownVersion()}`,
    ...(onRequest && { onRequest }),
  })
  return { api, server: access.server, [Symbol.asyncDispose]: () => access[Symbol.asyncDispose]() }
}
