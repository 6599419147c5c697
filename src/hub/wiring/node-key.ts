import { execFile } from 'node:child_process'
import { hkdfSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { howFailed } from '../../base/failed-program.ts'
import { readOwnFile } from '../../base/own-file.ts'
import { storedKey } from '../../base/stored-key.ts'
import { Secret } from '../../base/secret.ts'
import type { StartConfig } from '../../config/hub-config.ts'
import type { StoreKeySource } from '../../config/store-key.ts'
import { inOwnFolder } from './own-folder.ts'

/** The bytes of a key of 256 bits; text of that length is accepted, if it is as hard to guess. */
const leastBytes = 32
const mostBytes = 4096
/** A TPM takes seconds. A program that waits for the network would block a start without one. */
const commandMs = 30_000

const sealingFile = 'seal.key'

/** The keys for a node's cache, and for the hashes that identify its callers. */
export interface NodeKeys {
  /** Seals secrets and tokens in the store. */
  readonly sealing: Secret<Uint8Array>
  /** Keys the hashes that identify tokens. */
  readonly tokens: Secret<Uint8Array>
}

/**
 * The key is not available: without it the hub would lose sealed records, and could not recognize
 * its callers.
 */
class NoNodeKey extends Error {
  readonly code = 'NO_NODE_KEY'
}

/**
 * Reads the configured keys, or makes and stores them. From a key that is handed in the keys for
 * each purpose are derived, so that no file of the hub unseals anything. Rejects where a key that
 * is handed in is not available or too short.
 */
export async function nodeKeys({
  rootDir,
  storeKey,
}: Pick<StartConfig, 'rootDir' | 'storeKey'>): Promise<NodeKeys> {
  if (storeKey.kind === 'own') {
    const own = (file: string): Secret<Uint8Array> =>
      new Secret(inOwnFolder('--root-dir', rootDir, () => storedKey(join(rootDir, file))))
    return { sealing: own(sealingFile), tokens: own('token.key') }
  }
  const handedIn = await read(storeKey)
  const length = handedIn.byteLength
  if (length < leastBytes || length > mostBytes)
    throw new NoNodeKey(
      `${nameOf(storeKey)} gives ${length > mostBytes ? 'too much' : `${length} bytes`} for a key: at least ${leastBytes}, at most ${mostBytes}`,
    )
  const derive = (purpose: string): Secret<Uint8Array> =>
    new Secret(Buffer.from(hkdfSync('sha256', handedIn, '', `nodehub ${purpose}`, 32)))
  return { sealing: derive('seal'), tokens: derive('tokens') }
}

/** The hub's own sealing key, if there is one, without changing anything. */
export function sealingKeyIn(rootDir: string): Buffer | undefined {
  const found = readOwnFile(join(rootDir, sealingFile))
  return found?.byteLength === leastBytes ? found : undefined
}

function read(source: Exclude<StoreKeySource, { kind: 'own' }>): Promise<Buffer> | Buffer {
  if (source.kind === 'command') return outputOf(source.path)
  try {
    return readFileSync(source.file)
  } catch (cause) {
    throw new NoNodeKey(`${nameOf(source)} cannot be read`, { cause })
  }
}

/** Its output is never shown, not even after a failure: it may contain the key. */
function outputOf(path: string): Promise<Buffer> {
  const options = {
    timeout: commandMs,
    killSignal: 'SIGKILL',
    maxBuffer: 2 * mostBytes,
    encoding: 'buffer',
  } as const
  return new Promise((resolve, reject) => {
    const child = execFile(path, [], options, (failure, output) => {
      if (failure)
        reject(new NoNodeKey(`--store-key-command=${path} ${howFailed(failure, commandMs)}`))
      else resolve(output)
    })
    child.stdin?.end()
  })
}

const nameOf = (source: Exclude<StoreKeySource, { kind: 'own' }>): string =>
  source.kind === 'command' ? `--store-key-command=${source.path}` : source.file
