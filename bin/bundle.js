// Makes of the compiled hub what a node starts: its entry and `start`, each one file with the
// packages that it needs, in place of the hundreds of modules that Node would find, read and link.
// The other commands stay as the compiler has written them.
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'

const root = join(import.meta.dirname, '..')
const sources = join(root, 'src')
const [out = join(root, 'dist')] = process.argv.slice(2)

/** The commands, which the entry loads from files of their own. */
const commandsApart = {
  name: 'commands-apart',
  setup({ onResolve }) {
    onResolve({ filter: /\.ts$/ }, ({ kind, importer, path }) =>
      kind === 'dynamic-import' && importer === join(sources, 'cli', 'cli.ts')
        ? { path: path.replace(/^\.\/(.*)\.ts$/, './cli/$1.js'), external: true }
        : undefined,
    )
  },
}

/** Packages that few starts need, by the file that holds each of them alone. */
const packagesApart = { 'x509.cjs': '@peculiar/x509', 'jose.js': 'jose' }

const loadedLate = {
  name: 'loaded-late',
  setup({ onResolve }) {
    for (const [file, imported] of Object.entries(packagesApart))
      onResolve({ filter: new RegExp(`^${imported}$`) }, ({ kind }) =>
        kind === 'dynamic-import' ? { path: `./${file}`, external: true } : undefined,
      )
    onResolve({ filter: /\/tracing\/opentelemetry\.ts$/ }, ({ kind }) =>
      kind === 'dynamic-import' ? { path: './opentelemetry.js', external: true } : undefined,
    )
  },
}

/**
 * Node's own modules without the module of exports that an `import` of one makes: to fill it, Node
 * reads every export, and those of `node:http` that are loaded when they are read load all of fetch
 * and WebSocket. That was 40 ms of CPU of a start, and 6 MB. Only what is imported is read, once:
 * of a module that is not ESM, esbuild makes a copy for each file that imports it, with a getter
 * for each export. Those were 8,400 functions, 2 MB.
 */
const builtinsDirectly = {
  name: 'builtins-directly',
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^node:/ }, ({ kind, path }) =>
      kind === 'import-statement' ? { path, namespace: 'builtin' } : undefined,
    )
    onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path }) => {
      const names = Object.keys(process.getBuiltinModule(path)).filter((name) => name !== 'default')
      const lines = names.map(
        (name) =>
          `const ${name}_ = /* @__PURE__ */ read('${name}'); export { ${name}_ as ${name} }`,
      )
      const all = `const all = process.getBuiltinModule('${path}')`
      return {
        contents: [all, 'const read = (name) => all[name]', 'export default all', ...lines].join(
          '\n',
        ),
      }
    })
  },
}

/**
 * For packages that call `require`. All that they require is in the bundle or a module of Node,
 * which is found without the search of Node's own `require`.
 */
const requireBuiltin =
  'const require = (id) => process.getBuiltinModule(id) ?? (() => { throw new Error(`${id} is not in the bundle`) })();'

const bundled = {
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node26',
  // One character beyond ASCII, of which comments are full, makes V8 hold all in two bytes each.
  charset: 'ascii',
  legalComments: 'linked',
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit: 160,
  banner: { js: requireBuiltin },
  logLevel: 'warning',
  plugins: [builtinsDirectly],
}

// The hub serves these as they are.
cpSync(join(sources, 'status-page'), join(out, 'src', 'status-page'), { recursive: true })

const beside = join(out, 'src', 'cli')
await build({
  ...bundled,
  entryPoints: { main: join(sources, 'main.ts') },
  outdir: join(out, 'src'),
  plugins: [builtinsDirectly, commandsApart],
})
// A function, which `bundled-start.ts` compiles and calls.
await build({
  ...bundled,
  format: 'cjs',
  entryPoints: { start: join(sources, 'cli', 'start.ts') },
  outdir: beside,
  outExtension: { '.js': '.cjs' },
  banner: {
    js: `(function (module, bundleUrl, bundleFolder, bundleScript, bundleImport) { 'use strict'; ${requireBuiltin}`,
  },
  footer: { js: '})' },
  define: {
    'import.meta.url': 'bundleUrl',
    'import.meta.dirname': 'bundleFolder',
    // By it undici knows a bundle that has no use for its second parser, which no one asks for.
    esbuildDetection: '""',
  },
  plugins: [builtinsDirectly, loadedLate],
})
// What a script imports has no way to be found but one that Node warns of as an experiment.
const startBundle = join(beside, 'start.cjs')
writeFileSync(
  startBundle,
  readFileSync(startBundle, 'utf8').replaceAll(/\bimport\s*\(/g, 'bundleImport('),
)
await build({
  ...bundled,
  entryPoints: {
    start: join(sources, 'cli', 'bundled-start.ts'),
    // A thread, which `start` expects beside its own file.
    killer: join(sources, 'cli', 'killer.ts'),
    // With its packages, which only a hub with tracing loads.
    opentelemetry: join(sources, 'tracing', 'opentelemetry.ts'),
  },
  outdir: beside,
  plugins: [builtinsDirectly, loadedLate],
})
for (const [file, imported] of Object.entries(packagesApart))
  await build({
    ...bundled,
    entryPoints: [imported],
    outfile: join(beside, file),
    ...(file.endsWith('.cjs') && { format: 'cjs', banner: {} }),
    // Modules have names for what they export, which esbuild does not see in CommonJS.
    mainFields: ['module', 'main'],
  })
