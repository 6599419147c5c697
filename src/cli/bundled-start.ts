import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Script } from 'node:vm'
import { rootDirAhead } from '../config/root-dir.ts'
import type { Command } from './command.ts'
import { compiledIn, keptCode, type BundleScript } from './compiled-code.ts'

/**
 * `start` in `dist/`: runs its bundle with the code that an earlier process has kept of it.
 *
 * Why: Node's compile cache has the code that a module makes when it is loaded, which are a few
 * functions of it. Node compiled the functions that a start then calls each time: 100 of its 300 ms
 * of CPU, and 60 more to read through 2 MB of source. `vm.Script` hands out all code that was
 * compiled by any later moment.
 *
 * The code is of exactly this source and whole (checksums), of this V8 and its flags (V8 checks),
 * and from a folder into which no other user writes. Without it the bundle is compiled. The bundle
 * is a function; its parameters are the variables that a module has by itself.
 */
const file = join(import.meta.dirname, 'start.cjs')
const source = readFileSync(file, 'utf8')
const rootDir = rootDirAhead(process.argv.slice(3))
const kept = rootDir === undefined ? undefined : keptCode(compiledIn(rootDir), source)
const script = new Script(source, {
  filename: file,
  ...(kept && { cachedData: kept }),
})
const bundleScript: BundleScript = {
  source,
  createCachedData: () => script.createCachedData(),
  isReused: script.cachedDataRejected === false,
}

type Bundle = (
  module: { exports: { start?: Command } },
  url: string,
  folder: string,
  bundleScript: BundleScript,
  importBeside: (specifier: string) => Promise<unknown>,
) => void

const required = new Map<string, WeakRef<object>>()

/**
 * What `import` loads stays for good. What makes certificates, 3 MB of CommonJS that a hub seldom
 * needs, is garbage once nothing uses it.
 */
async function importBeside(specifier: string): Promise<unknown> {
  if (!specifier.endsWith('.cjs')) return import(specifier)
  const known = required.get(specifier)?.deref()
  if (known) return known
  const require = createRequire(import.meta.url)
  const exports = require(specifier) as object
  delete require.cache[require.resolve(specifier)]
  required.set(specifier, new WeakRef(exports))
  return exports
}

const module: Parameters<Bundle>[0] = { exports: {} }
const run = script.runInThisContext() as Bundle
run(module, import.meta.url, import.meta.dirname, bundleScript, importBeside)
if (!module.exports.start) throw new Error(`${file} has no command`)

export const { start } = module.exports
