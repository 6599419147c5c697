/**
 * What may import what, and which words sources, pages and titles of tests do not use. `npm run
 * check` runs this file; ARCHITECTURE.md draws the same floors. A folder imports from floors below
 * its own and from itself: never from a neighbour on its floor, never from above; and no files
 * import each other in a circle. Types count as imports, and so does what is imported when it runs.
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
  ['hub/answers', 'hub/store/state'],
  [
    'hub/filter',
    'hub/identity',
    'hub/boot',
    'hub/cache',
    'hub/store/log',
    'hub/upstream',
    'http/server',
    'node/lint',
  ],
  ['hub/pipeline', 'cluster', 'node/join'],
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

interface AvoidedWord {
  readonly word: RegExp
  /** What to write in its place. */
  readonly say: string
  /** It is also a name that has been released: code may use it, comments may not. */
  readonly isName?: true
}

/** Riddles, and words of our own for what has a name in Kubernetes or Envoy. */
const avoidedWords: readonly AvoidedWord[] = [
  { word: /\b(?:no|any|some)body\b/i, say: '“no client”, “no caller”: name who does not act' },
  { word: /\bwhoever\b/i, say: '“the client that”, “each caller that”' },
  { word: /\bwho asks\b/i, say: '“the caller”, “the identity of the request”' },
  { word: /\basked\b/i, say: '“requested”, “sends a request”' },
  { word: /\btold\b/i, say: '“gets”, “is sent”, “last observed”', isName: true },
  { word: /\bnews\b/i, say: '“watch event”, “change”' },
  { word: /\bstanding\b/i, say: '“health”, “state”' },
  { word: /\bjudged\b/i, say: '“evaluated”, “the verdict on”' },
  { word: /\blasting\b/i, say: '“long-running”' },
  { word: /\bspell(?:s|ed|ing|ings)?\b/i, say: '“format”, “write”; “offline” for the time' },
  { word: /\bshelf\b/i, say: '“outbox”' },
  { word: /\bwishes\b/i, say: '“options”, “settings”' },
  { word: /\byours\b/i, say: 'whose it is: “the successor”, “your own”', isName: true },
]

export interface SourceFile {
  /** From the root of the repository, with forward slashes. */
  readonly path: string
  readonly source: string
}

/**
 * A sentence for each thing in `files` that breaks the floors, is named for nothing, is commented
 * too wide or says a word that this project avoids; none if all is well.
 */
function brokenFloors(files: readonly SourceFile[]): string[] {
  return [...files.flatMap(brokenIn), ...circles(files)]
}

function brokenIn(file: SourceFile): string[] {
  if (isPage(file.path)) return badWords(file)
  if (!file.path.endsWith('.ts')) return longComments(file)
  return [
    ...badNames(file.path),
    ...badImports(file),
    ...longComments(file),
    ...badWords(file),
    ...badTitles(file),
  ]
}

const isPage = (path: string): boolean => path.endsWith('.md')

const columns = 100

const comment = /^\s*(?:\/?\*|\/\/|<!--)|\s\/[/*] /

/** Prettier breaks code at so many columns, and leaves comments as they are. */
function longComments({ path, source }: SourceFile): string[] {
  return source
    .split('\n')
    .map((line, at) => ({ line, number: at + 1 }))
    .filter(({ line }) => line.length > columns && comment.test(line))
    .map(({ number }) => `${path}:${number}: a comment beyond ${columns} columns; wrap it`)
}

/** Quotations keep their words: code, names in backticks, and the titles of tests on a page. */
function badWords({ path, source }: SourceFile): string[] {
  if (!isPage(path) && unitOf(path) === undefined) return []
  const text = isPage(path)
    ? source.replaceAll(/^ *```[^]*?^ *```$|“[^”]*”|`[^`\n]*`/gm, (quoted) =>
        quoted.replaceAll(/[^\n]/g, ' '),
      )
    : source
  return text.split('\n').flatMap((line, at) => {
    const isProse = isPage(path) || comment.test(line)
    const own = isProse ? line.replaceAll(/`[^`]*`/g, '') : line
    return avoidedWords.flatMap(({ word, say, isName }) => {
      const found = isName !== undefined && !isProse ? undefined : word.exec(own)?.[0]
      return found === undefined ? [] : [`${path}:${at + 1}: “${found}”; say ${say}`]
    })
  })
}

/** Files whose titles have avoided words still; one that has none any more is off this list. */
const withOldTitles: ReadonlySet<string> = new Set([
  'test/config/config-watcher.test.ts',
  'test/differential/check.ts',
  'test/differential/sandbox.test.ts',
  'test/metrics/metrics.test.ts',
])

/** Up to a title's end: of a test, or of a promise that each implementation of a contract keeps. */
const titled = /\b(?:test|promise)\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g

function badTitles({ path, source }: SourceFile): string[] {
  const found = path.startsWith('test/') ? avoidedInTitles(path, source) : []
  if (!withOldTitles.has(path)) return found
  return found.length > 0 ? [] : [`${path} has no old title any more: take it off withOldTitles`]
}

const avoidedInTitles = (path: string, source: string): string[] =>
  [...source.matchAll(titled)].flatMap(({ index, 2: text = '' }) => {
    const line = source.slice(0, index).split('\n').length
    const title = text.replaceAll(/\$\{[^}]*\}/g, '')
    return avoidedWords.flatMap(({ word, say }) => {
      const found = word.exec(title)?.[0]
      return found === undefined ? [] : [`${path}:${line}: “${found}” in a title; say ${say}`]
    })
  })

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
  for (const target of targetsIn({ path, source })) {
    const complaint = complaintAbout(from, target)
    if (complaint !== undefined) problems.push(`${path} imports ${target}: ${complaint}`)
  }
  return problems
}

/** The files of static and dynamic imports, of exports from elsewhere, and of workers. */
const targetsIn = ({ path, source }: SourceFile): string[] =>
  [...source.matchAll(/(?:\bfrom\s*|\bimport\s*\(?\s*|\bnew URL\(\s*)(['"])(\.[^'"]+)\1/g)].map(
    ([, , specifier = '']) => posix.join(posix.dirname(path), specifier),
  )

/** A sentence for each import that closes a circle; of a dynamic one `import/no-cycle` has none. */
function circles(files: readonly SourceFile[]): string[] {
  const imports = new Map(files.map((file) => [file.path, targetsIn(file)]))
  const left = new Set(imports.keys())
  const visit = (path: string, way: readonly string[]): string[] => {
    const onWay = way.indexOf(path)
    if (onWay >= 0) return [`imports in a circle: ${[...way.slice(onWay), path].join(' → ')}`]
    if (!left.delete(path)) return []
    return (imports.get(path) ?? []).flatMap((target) => visit(target, [...way, path]))
  }
  return [...imports.keys()].flatMap((path) => visit(path, []))
}

/**
 * What stands on a floor: `src/base`, `src/main.ts`, `src/hub/store`, `filters`; `undefined` for
 * tests and benches, which see everything.
 */
function unitOf(path: string): string | undefined {
  const [top, second = '', third = '', fourth = ''] = path.split('/')
  if (top !== 'src') return top === 'filters' ? 'filters' : undefined
  const groups = [`${second}/${third}/${fourth}`, `${second}/${third}`]
  return `src/${groups.find((each) => floorOf.has(each)) ?? second}`
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

/** All sources of the repository, and the pages. */
const repository = (): SourceFile[] =>
  globSync([
    'src/**/*.ts',
    'filters/**/*.ts',
    'test/**/*.ts',
    'bench/**/*.ts',
    'packaging/**/*.ts',
    'bin/*.js',
    'src/status-page/*.{js,css,html}',
    '{test,bench}/**/*.{c,go}',
    'docs/{,design/}*.md',
    'filters/README.md',
    '{README,ARCHITECTURE,CONTRIBUTING,SECURITY}.md',
  ]).map((path) => ({
    path: path.replaceAll('\\', '/'),
    source: readFileSync(path, 'utf8'),
  }))

if (import.meta.main) {
  const broken = brokenFloors(repository())
  for (const sentence of broken) process.stderr.write(`floors: ${sentence}\n`)
  process.exitCode = broken.length > 0 ? 1 : 0
}
