import { join } from 'node:path'
import type { Logger } from 'pino'
import { storedToken } from '../../base/stored-key.ts'
import type { Secret } from '../../base/secret.ts'
import type { StartConfig } from '../../config/hub-config.ts'

/**
 * The token with which callers other than root may inspect the hub: it is under `--root-dir`, for
 * root to hand out. Absent where the disk cannot store one.
 */
export function inspectToken({ rootDir }: StartConfig, log: Logger): Secret<string> | undefined {
  const file = join(rootDir, 'inspect.token')
  try {
    return storedToken(file)
  } catch (err) {
    log.warn({ err, file }, 'the inspect token cannot be read or made: root alone can inspect')
    return undefined
  }
}
