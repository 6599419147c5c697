/** Replaces the pair of a folder by that in a file, and is killed at a step of its disk work. */
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { readFileSync } from 'node:fs'
import type { IssuedCertificate } from '../../src/certificates/authority.ts'
import { StoredPair } from '../../src/certificates/stored-pair.ts'

const [folder = '', pair = '', last = ''] = process.argv.slice(2)
let steps = 0

for (const name of ['open', 'rename', 'rm', 'symlink', 'readdir'] as const) {
  const act = fs[name] as (...args: unknown[]) => Promise<unknown>
  Object.assign(fs, {
    [name]: (...args: unknown[]) => {
      if (++steps > Number(last)) process.kill(process.pid, 'SIGKILL')
      return act(...args)
    },
  })
}
syncBuiltinESMExports()

const next = JSON.parse(readFileSync(pair, 'utf8')) as IssuedCertificate
await new StoredPair(folder, 'own').replace(next)
