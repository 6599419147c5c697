import { join } from 'node:path'
import type { Logger } from 'pino'
import { followCredentials, type CredentialFollower } from '../client/credential-follower.ts'
import type { Credentials } from '../config/credentials.ts'
import type { HubConfig } from '../config/hub-config.ts'
import { Serving } from '../server/serving.ts'
import { servingNames } from './names.ts'

/** How often credential files are looked at. */
const lookMs = 5_000

/** What the TLS listener shows. Throws where given files cannot be used. */
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

/** The hub's own credentials, `first` to begin with; `replace` is called with those that come after them. */
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
