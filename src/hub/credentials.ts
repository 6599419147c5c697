import { join } from 'node:path'
import type { Logger } from 'pino'
import { followCredentials, type CredentialFollower } from '../client/credential-follower.ts'
import type { Credentials } from '../config/credentials.ts'
import type { HubConfig } from '../config/hub-config.ts'
import { Serving } from '../server/serving.ts'
import { servingNames } from './names.ts'

/** How often credential files are looked at. */
const lookMs = 5_000

/** The certificates of the TLS listener, kept current. Throws where given files cannot be used. */
export const servingOf = (config: HubConfig, upstreamCa: string | undefined, log: Logger) =>
  new Serving({
    folder: join(config.rootDir, 'pki'),
    names: servingNames(config),
    given: config.tls.serving,
    clientCa: config.tls.clientCa,
    upstreamCa,
    onAuthorityMade: () =>
      log.warn(
        'a new authority was made for the TLS proxy: its clients must be given pki/ca.crt under --root-dir',
      ),
    onUnusable: (err) =>
      log.warn(
        { err },
        "the TLS listener's certificates have changed and cannot be used; the last good ones stay",
      ),
  })

/** Follows the files of the hub's own credentials; `replace` is called with those that differ from `first`, and from then on with each change. */
export const followed = (
  config: HubConfig,
  first: Credentials,
  replace: (credentials: Credentials) => void,
  log: Logger,
): CredentialFollower =>
  followCredentials(
    config.credentials,
    first,
    lookMs,
    (changed) => {
      log.info('the credentials have changed')
      replace(changed)
    },
    (err) =>
      log.warn({ err }, 'the credentials have changed and cannot be used; the last good ones stay'),
  )
