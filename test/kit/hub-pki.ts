import { hash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { servingCertificate } from '../../src/certificates/serving-certificate.ts'
import { storedAuthority } from '../../src/certificates/stored-authority.ts'
import { StoredPair } from '../../src/certificates/stored-pair.ts'
import type { StartConfig } from '../../src/config/hub-config.ts'
import { servingNames } from '../../src/hub/wiring/names.ts'
import { filledOnceInARun } from './once-in-a-run.ts'

/**
 * Gives a hub that has none the authority and the serving certificate that it would make at its
 * first start. Hubs of a run with the same names share them: they are started a thousand times, and
 * making both is 10 to 20 ms of processor time. A test file that runs by itself has its hubs make
 * their own.
 */
export async function shareServingCertificate(config: StartConfig): Promise<void> {
  const folder = join(config.rootDir, 'pki')
  if (existsSync(folder)) return
  const names = servingNames(config)
  const name = `serving-${hash('sha256', names.join()).slice(0, 16)}`
  const made = await filledOnceInARun(name, async (folder) => {
    const authority = await storedAuthority(folder, () => undefined)
    const stored = new StoredPair(folder, 'nodehub-server')
    const fail = (cause: unknown): never => {
      throw cause
    }
    await servingCertificate({ authority, names, stored, onFailure: fail })
  })
  if (made === undefined) return
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  cpSync(made, folder, { recursive: true, verbatimSymlinks: true })
}
