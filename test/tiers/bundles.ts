// The programs and threads of a hub, each as one file with the packages that it needs, and the
// packages that tests load. Tests start hundreds of them: to find, read and link hundreds of
// modules is half of the processor time of a start.
import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { build, type BuildOptions } from 'esbuild'
import { bundledPackages, pathOfBundle } from './bundled-packages.ts'

/** Each beside the one that starts it, under the name by which that looks for it. */
const threads = {
  killer: 'src/cli/killer.ts',
}

const programs = { main: 'src/main.ts', 'hub-main': 'test/kit/hub-main.ts' }

/** For packages that call `require`: what they require is in the bundle, or a module of Node. */
const requireBuiltin =
  'const require = (id) => process.getBuiltinModule(id) ?? (() => { throw new Error(`${id} is not in the bundle`) })();'

const options: BuildOptions = {
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node26',
  // Modules have names for what they export, which esbuild does not see in CommonJS.
  mainFields: ['module', 'main'],
  // A character beyond ASCII would have all of a file held in two bytes each.
  charset: 'ascii',
  banner: { js: requireBuiltin },
  logLevel: 'warning',
}

/** Of what the bundles are made. */
const inputs = [
  '{src,filters,test/kit}/**/*.ts',
  'src/status-page/*',
  'package-lock.json',
  join(import.meta.dirname, 'bundled-packages.ts'),
  import.meta.filename,
]

/**
 * What stands for each package, under its name: esbuild takes what a package in CommonJS exports
 * for its default alone.
 */
function packages(): Record<string, string> {
  const require = createRequire(import.meta.url)
  const namesOf = (name: string): string[] =>
    Object.keys(require(name) as object).filter((each) => /^[A-Za-z_$][\w$]*$/.test(each))
  const exported = (name: string): string => [...new Set(['default', ...namesOf(name)])].join(', ')
  return Object.fromEntries([
    ...bundledPackages.modules.map((name) => [name, `export * from '${name}'`]),
    ['tap', "export * from 'tap'; export { default } from 'tap'"],
    ...bundledPackages.commonJs.map((name) => [
      name,
      `export { ${exported(name)} } from '${name}'`,
    ]),
  ]) as Record<string, string>
}

/** Writes them where `pathOfBundle` has them. */
async function bundlePackages(outdir: string): Promise<void> {
  const sources = packages()
  const entryPoints = Object.keys(sources).map((name) => ({
    in: `bundled:${name}`,
    out: pathOfBundle(name).replace(/\.js$/, ''),
  }))
  await build({
    ...options,
    outdir,
    splitting: true,
    entryPoints,
    plugins: [
      {
        name: 'bundled',
        setup(bundling) {
          bundling.onResolve({ filter: /^bundled:/ }, ({ path }) => ({
            path,
            namespace: 'bundled',
          }))
          bundling.onLoad({ filter: /.*/, namespace: 'bundled' }, ({ path }) => ({
            contents: sources[path.replace('bundled:', '')] ?? '',
            resolveDir: import.meta.dirname,
          }))
        },
      },
    ],
  })
}

/** After that long a bundle of other sources is taken away: no run is still at work with it. */
const keptMs = 24 * 3_600_000

/**
 * Resolves to the folder in `parent` of the bundles of the present sources, which an earlier run
 * may have made.
 */
export async function bundlesIn(parent: string): Promise<string> {
  const hash = createHash('sha256')
  for (const file of globSync(inputs).toSorted()) hash.update(file).update(readFileSync(file))
  const folder = join(parent, hash.digest('hex').slice(0, 16))
  if (existsSync(folder)) return folder
  mkdirSync(parent, { recursive: true })
  for (const name of readdirSync(parent)) {
    const other = join(parent, name)
    if (statSync(other).mtimeMs < Date.now() - keptMs) rmSync(other, { recursive: true })
  }
  const outdir = mkdtempSync(`${folder}-`)
  await Promise.all([
    build({ ...options, outdir, splitting: true, entryPoints: programs }),
    build({ ...options, outdir, entryPoints: threads }),
    bundlePackages(outdir),
  ])
  // The hub serves these as they are.
  cpSync('src/status-page', join(outdir, 'status-page'), { recursive: true })
  // Other users run them, too.
  chmodSync(outdir, 0o755)
  try {
    renameSync(outdir, folder)
  } catch (error) {
    // Another run has been faster.
    if (!existsSync(folder)) throw error
    rmSync(outdir, { recursive: true })
  }
  return folder
}
