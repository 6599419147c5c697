import { readFileSync } from 'node:fs'
import { after } from '../../base/clock.ts'
import { Secret } from '../../base/secret.ts'
import {
  parseBootstrapToken,
  readBootstrapFile,
  type BootstrapConfig,
} from '../../config/bootstrap.ts'
import type { Credentials } from '../../config/credentials.ts'
import { messageOf } from '../../config/settings.ts'
import { anyApiCall, ApiRefusal } from './api-call.ts'
import { findCa } from './cluster-info.ts'

/** Any authenticated caller may read it. */
const version = { method: 'GET', path: '/version' }

/**
 * Why the hub would get no certificate now, without a request for one: checks whether an API server
 * answers, the CA is the pinned one, and the token is accepted. Writes nothing, and takes no longer
 * than `patienceMs`. `undefined`: no reason was found.
 */
export async function bootstrapFault(
  servers: readonly URL[],
  bootstrap: BootstrapConfig,
  patienceMs: number,
): Promise<string | undefined> {
  const stopped = new AbortController()
  using _ = after(patienceMs, () => stopped.abort())
  try {
    const shown = await bootstrapCredentials(servers, bootstrap, stopped.signal)
    if (shown === undefined) return 'there is neither a --join-token nor a --bootstrap-file'
    const answer = await anyApiCall(servers, shown, { signal: stopped.signal })(version)
    return answer.status === 401
      ? `the bootstrap token is not accepted: ${new ApiRefusal('the API server', version, answer).message}`
      : undefined
  } catch (cause) {
    return stopped.signal.aborted
      ? `no API server has answered within ${patienceMs / 1000} s`
      : messageOf(cause)
  }
}

async function bootstrapCredentials(
  servers: readonly URL[],
  bootstrap: BootstrapConfig,
  signal: AbortSignal,
): Promise<Credentials | undefined> {
  const { token, file } = bootstrap
  const readFile = (path: string): string => readFileSync(path, 'utf8')
  const inFile = file === undefined ? undefined : readBootstrapFile(file, bootstrap, readFile)
  const used = parseBootstrapToken(inFile?.token?.reveal() ?? '') ?? token
  const given = bootstrap.ca === undefined ? inFile?.ca : readFile(bootstrap.ca)
  const ca = given ?? (used && (await findCa(servers, used, bootstrap, signal)))
  const own = ca === undefined ? { files: [] } : { ca, files: [] }
  if (inFile) return { ...inFile, ...own }
  return token && { ...own, token: new Secret(`${token.id}.${token.secret.reveal()}`) }
}
