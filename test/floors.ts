/**
 * What may import what. `npm run check` runs this file; ARCHITECTURE.md draws the same floors. A
 * folder imports from floors below its own and from itself: never from a neighbour on its floor,
 * never from above. Types count as imports.
 */
import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'

/**
 * The folders of src/, in their groups, and its single files, from the ground up. A group has no
 * floor of its own: what it holds stands on several.
 */
export const floors: readonly (readonly string[])[] = [
  ['base'],
  ['api/kube', 'certificates'],
  ['api/request', 'api/codec', 'metrics', 'config', 'tracing'],
  ['http/exchange', 'api/reflector'],
  ['http/client', 'hub/store'],
  ['hub/answers'],
  [
    'hub/filter',
    'hub/identity',
    'hub/boot',
    'hub/cache',
    'hub/upstream',
    'http/server',
    'node/lint',
  ],
  ['hub/pipeline', 'hub/authorization', 'cluster', 'node/join', 'node/backup'],
  ['hub/wiring', 'sandbox', 'node/adopt'],
  ['hub/hub.ts'],
  ['cli'],
  ['main.ts'],
]

const floorOf = new Map(
  floors.flatMap((names, floor) => names.map((name) => [name, floor] as const)),
)

/** What the filters see, so that a filter can be written knowing only these. */
const seenByFilters = new Set(['src/hub/filter', 'src/api/codec', 'src/api/kube'])

/** Who sees the filters: the composition root, which chains them. */
const seesFilters = new Set(['src/hub/wiring'])

/**
 * What may import a file that only shows when it runs: filters of the operator's own, and what the
 * bundle of `start` imports.
 */
const importsAnything = new Set(['src/hub/filter/own/module.ts', 'src/cli/bundled-start.ts'])

const namelessName = /(?:^|[-.])(?:utils?|helpers?|common|managers?|misc)(?:[-.]|$)/

export interface SourceFile {
  /** From the root of the repository, with forward slashes. */
  readonly path: string
  readonly source: string
}

/**
 * A sentence for each thing in `files` that breaks the floors, is named for nothing or is commented
 * too wide; none if all is well.
 */
export function brokenFloors(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) => [
    ...badNames(file.path),
    ...badImports(file),
    ...longComments(file),
  ])
}

const columns = 100

/** prettier breaks code at so many columns, and leaves comments as they are. */
function longComments({ path, source }: SourceFile): string[] {
  return source
    .split('\n')
    .map((line, at) => ({ line, number: at + 1 }))
    .filter(({ line }) => line.length > columns && /^\s*(?:\/?\*|\/\/)|\s\/\/ /.test(line))
    .map(({ number }) => `${path}:${number}: a comment beyond ${columns} columns; wrap it`)
}

function badNames(path: string): string[] {
  const bad = path.split('/').filter((part) => namelessName.test(part.replace(/\.ts$/, '')))
  return bad.map((part) => `${path}: ${part} says nothing of what it knows; name it for that`)
}

function badImports({ path, source }: SourceFile): string[] {
  const from = unitOf(path)
  if (from === undefined) return []
  if (from.startsWith('src/') && !floorOf.has(from.slice(4)))
    return [`${path}: ${from} stands on no floor`]
  const computed = !importsAnything.has(path) && /\bimport\(\s*[^'"\s]/.test(source)
  const problems = computed ? [`${path} imports what only shows when it runs`] : []
  for (const specifier of specifiersIn(source)) {
    if (!specifier.startsWith('.')) continue
    const target = posix.join(posix.dirname(path), specifier)
    const complaint = complaintAbout(from, target)
    if (complaint !== undefined) problems.push(`${path} imports ${target}: ${complaint}`)
  }
  return problems
}

/** Static and dynamic imports, exports from elsewhere, and workers' files. */
const specifiersIn = (source: string): string[] =>
  [...source.matchAll(/(?:\bfrom\s*|\bimport\s*\(?\s*|\bnew URL\(\s*)(['"])([^'"]+)\1/g)].map(
    ([, , specifier = '']) => specifier,
  )

/**
 * What stands on a floor: `src/base`, `src/main.ts`, `src/hub/store`, `filters`; `undefined` for
 * tests and benches, which see everything.
 */
function unitOf(path: string): string | undefined {
  const [top, second = '', third = ''] = path.split('/')
  if (top !== 'src') return top === 'filters' ? 'filters' : undefined
  const inGroup = `${second}/${third}`
  return `src/${floorOf.has(inGroup) ? inGroup : second}`
}

function complaintAbout(from: string, target: string): string | undefined {
  const to = unitOf(target)
  if (to === undefined) return 'nothing that is shipped sees what is outside src/ and filters/'
  if (to === from) return undefined
  if (from === 'filters') return seenByFilters.has(to) ? undefined : `filters do not see ${to}`
  if (to === 'filters')
    return seesFilters.has(from) ? undefined : `${from} does not see the filters`
  const [own, its] = [floorOf.get(from.slice(4)) ?? -1, floorOf.get(to.slice(4)) ?? Infinity]
  if (its < own) return undefined
  return its === own ? `${to} is a neighbour of ${from}` : `${to} is above ${from}`
}

/** Everything the repository holds that is written in TypeScript. */
export const repository = (): SourceFile[] =>
  globSync([
    'src/**/*.ts',
    'filters/**/*.ts',
    'test/**/*.ts',
    'bench/**/*.ts',
    'packaging/**/*.ts',
  ]).map((path) => ({
    path: path.replaceAll('\\', '/'),
    source: readFileSync(path, 'utf8'),
  }))

if (import.meta.main) {
  const broken = brokenFloors(repository())
  for (const sentence of broken) process.stderr.write(`floors: ${sentence}\n`)
  process.exitCode = broken.length > 0 ? 1 : 0
}
