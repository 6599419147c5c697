import { readFileSync } from 'node:fs'
import { after } from '../../base/clock.ts'
import { Secret } from '../../base/secret.ts'
import {
  parseBootstrapToken,
  readBootstrapFile,
  type BootstrapConfig,
  type BootstrapToken,
} from '../../config/bootstrap.ts'
import type { Credentials } from '../../config/credentials.ts'
import { messageOf } from '../../config/settings.ts'
import { anyApiCall, ApiRefusal } from './api-call.ts'
import { findCa } from './cluster-info.ts'

export const readText = (path: string): string => readFileSync(path, 'utf8')

/** `undefined` where the file cannot be read. */
export function textOf(path: string): string | undefined {
  try {
    return readText(path)
  } catch {
    return undefined
  }
}

/** Of `--upstream-ca`, else of the bootstrap file. */
function givenCa(config: BootstrapConfig): string | undefined {
  if (config.ca !== undefined) return readText(config.ca)
  return config.file === undefined || textOf(config.file) === undefined
    ? undefined
    : readBootstrapFile(config.file, config, readText).ca
}

/** The credentials in the bootstrap file, with the CA that is given or that its token finds. */
export async function credentialsInFile(
  file: string,
  servers: readonly URL[],
  config: BootstrapConfig,
  signal: AbortSignal,
): Promise<Credentials> {
  const credentials = readBootstrapFile(file, config, readText)
  const token = parseBootstrapToken(credentials.token?.reveal() ?? '')
  const ca = givenCa(config) ?? (token && (await findCa(servers, token, config, signal)))
  return { ...credentials, ...(ca !== undefined && { ca }) }
}

/** Those of the bearer of a token, with the CA that is given or that it finds. */
export async function credentialsOfToken(
  token: BootstrapToken,
  servers: readonly URL[],
  config: BootstrapConfig,
  signal: AbortSignal,
): Promise<Credentials> {
  const ca = givenCa(config) ?? (await findCa(servers, token, config, signal))
  return { ca, token: new Secret(textOfToken(token)), files: [] }
}

export const textOfToken = ({ id, secret }: BootstrapToken): string => `${id}.${secret.reveal()}`

/** Any authenticated caller may read it. */
const version = { method: 'GET', path: '/version' }

/**
 * Why the hub would get no certificate now, without a request for one: checks whether an API server
 * answers, the CA is the pinned one, and the token is accepted. Writes nothing, and takes no longer
 * than `patienceMs`. `undefined`: no reason was found.
 */
export async function bootstrapFault(
  servers: readonly URL[],
  config: BootstrapConfig,
  patienceMs: number,
): Promise<string | undefined> {
  const stopped = new AbortController()
  using _ = after(patienceMs, () => stopped.abort())
  const { signal } = stopped
  const { file, token } = config
  try {
    if (file === undefined && token === undefined)
      return 'there is neither a --join-token nor a --bootstrap-file'
    const shown =
      token === undefined || file !== undefined
        ? await credentialsInFile(file ?? '', servers, config, signal)
        : await credentialsOfToken(token, servers, config, signal)
    const answer = await anyApiCall(servers, shown, { signal })(version)
    return answer.status === 401
      ? `the bootstrap token is not accepted: ${new ApiRefusal('the API server', version, answer).message}`
      : undefined
  } catch (cause) {
    return signal.aborted
      ? `no API server has answered within ${patienceMs / 1000} s`
      : messageOf(cause)
  }
}
