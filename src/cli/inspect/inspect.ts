import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { pause } from '../../base/clock.ts'
import { defaultRootDir } from '../../config/root-dir.ts'
import { option } from '../../config/option.ts'
import { flagsOfHub } from '../../config/options.ts'
import { didYouMean } from '../../config/suggestion.ts'
import { messageOf, strayWords } from '../../config/settings.ts'
import { boolean, text } from '../../config/value.ts'
import { refuse, type Command, type ExitCode, type Terminal } from '../command.ts'
import { readFlags } from '../command-flags.ts'
import { wrapped } from '../wrapped.ts'
import { hubItems, hubReport, opsRequest } from './hub-reports.ts'
import type { Inspected, Inspection } from './inspection.ts'
import { outputFlag, printed } from './printed.ts'
import { inspections } from './table.ts'

/** The flags of every sub-command. */
const familyFlags = {
  output: outputFlag,
  watch: option({
    type: boolean,
    help: 'Print the report again whenever it has changed, until interrupted; with json one line for each.',
    short: 'w',
  }),
  ...flagsOfHub('serve-port', 'bind-address'),
  'token-file': option({
    type: text('FILE'),
    help: "A copy of inspect.token from the hub's --root-dir, for users other than root.",
  }),
  'root-dir': option({
    type: text('DIR'),
    help: 'The --root-dir of a stopped hub: shows what is on the disk, for root, and leaves it as it is.',
  }),
  'disk-cache-path': option({
    type: text('DIR'),
    help: 'Its --disk-cache-path, if that is elsewhere.',
  }),
}

type FamilyValues = ReturnType<typeof readFlags<typeof familyFlags>>['values']

/** Inspects the hub that runs on this node. */
export const inspect: Command = {
  usage: 'inspect WHAT [FLAG...]',
  description: `Reports on the hub of this node, for root and for holders of the hub's token.

${Object.entries(inspections)
  .map(([name, { summary }]) => `  ${name}\n${wrapped(summary)}`)
  .join('')}
Each report has its own help: nodehub inspect status --help.
Exit codes: 0, all is well; 1, the report has a fault; 2, invalid arguments, or nothing can be read.
`,
  flags: familyFlags,
  subcommands: Object.keys(inspections),
  async run(argv, terminal) {
    const parsed = await parseInspection(argv)
    if ('mistakes' in parsed) return refuse(terminal, 'inspect', parsed.mistakes)
    const { what, one, values, from } = parsed
    if (values.watch) return watch(parsed, terminal)
    try {
      const report = await one.read(from)
      terminal.out(printed(report, values.output, () => one.table(report)))
      return one.code?.(report) ?? 0
    } catch (cause) {
      terminal.err(`nodehub inspect ${what}: ${messageOf(cause)}\n`)
      return 2
    }
  },
}

/** `nodehub inspect`, or its sub-command that `argv` names. */
export async function inspectOf(argv: readonly string[]): Promise<Command> {
  const [what = ''] = readFlags(familyFlags, argv).words
  const one = await load(what)
  if (one === undefined) return inspect
  const { takes = [], takesRest, help, flags = {} } = one
  const words = [what, ...takes, '[FLAG...]', ...(takesRest === undefined ? [] : [takesRest])]
  const summary = wrapped(`Shows ${inspections[what]?.summary ?? ''}.`, '')
  return {
    usage: `inspect ${words.join(' ')}`,
    description: `${summary}${help === undefined ? '' : `\n${help}`}`,
    flags: { ...flags, ...familyFlags },
    run: (words, terminal) => inspect.run(words, terminal),
  }
}

async function load(what: string | undefined): Promise<Inspection<unknown> | undefined> {
  const entry = what !== undefined && Object.hasOwn(inspections, what) && inspections[what]
  return entry ? entry.load() : undefined
}

interface ParsedInspection {
  readonly what: string
  readonly one: Inspection<unknown>
  readonly values: FamilyValues
  readonly from: Inspected
}

/** Parses the arguments of `inspect`; with mistakes it returns all of them. */
export async function parseInspection(
  argv: readonly string[],
): Promise<ParsedInspection | { readonly mistakes: readonly string[] }> {
  const [what] = readFlags(familyFlags, argv).words
  const one = await load(what)
  const flags = { ...one?.flags, ...familyFlags }
  const end = one?.takesRest === undefined ? -1 : argv.indexOf('--')
  const rest = end < 0 ? undefined : argv.slice(end + 1)
  const { values, words, mistakes } = readFlags(flags, end < 0 ? argv : argv.slice(0, end))
  const takes = one?.takes ?? []
  const given = words.slice(1, 1 + takes.length)
  const wrong = [
    ...mistakes,
    ...(one ? [] : [unknown(what)]),
    ...takes.slice(given.length).map((name) => `${name} is missing`),
    ...strayWords(words.slice(1 + takes.length), flags),
    ...(one?.acts && values.watch ? [`--watch: ${what} is done once`] : []),
    ...(one && !one.ofStopped && isOfStopped(values) ? [await ofRunning(what)] : []),
  ]
  if (!one || what === undefined || wrong.length > 0) return { mistakes: wrong }
  const all: Readonly<Record<string, unknown>> = values
  return { what, one, values, from: inspected(values, given, rest, (name) => all[name]) }
}

const isOfStopped = (values: FamilyValues): boolean =>
  values['root-dir'] !== undefined || values['disk-cache-path'] !== undefined

async function ofRunning(what: string | undefined): Promise<string> {
  const all = Object.entries(inspections).map(async ([name, { load }]) =>
    (await load()).ofStopped ? name : [],
  )
  const ofStopped = (await Promise.all(all)).flat()
  return `--root-dir, --disk-cache-path: ${what} is about a running hub; of a stopped one there are ${listed(ofStopped)}`
}

const listed = (names: readonly string[]): string =>
  new Intl.ListFormat('en-GB', { type: 'conjunction' }).format(names)

/** What takes the place of reports that an earlier release had. */
const gone: Readonly<Record<string, string>> = {
  profile:
    'there is no profile any more: SIGQUIT writes stacks and memory, and NODE_OPTIONS=--cpu-prof of a start a profile',
  traffic:
    'there is no traffic by day any more: node_yurthub_proxy_traffic_collector of /metrics counts the bytes of answers by component and resource',
}

function unknown(what: string | undefined): string {
  const instead = what !== undefined && Object.hasOwn(gone, what) ? gone[what] : undefined
  if (instead !== undefined) return instead
  const names = Object.keys(inspections)
  return what === undefined
    ? `WHAT is missing, one of ${names.join(', ')}`
    : `there is no report ${JSON.stringify(what)}${didYouMean(what, names)}`
}

function inspected(
  values: FamilyValues,
  words: readonly string[],
  rest: readonly string[] | undefined,
  flag: (name: string) => unknown,
): Inspected {
  const { 'bind-address': host, 'serve-port': port, 'token-file': tokenFile } = values
  const hub = { host, port, tokenFile }
  const notInspected = (cause: unknown): Error =>
    new Error(
      `the hub at ${host}:${port} cannot be inspected: ${messageOf(cause)}${isRefused(cause) ? ofNone : ''}`,
      { cause },
    )
  return {
    words,
    rest,
    isStopped: isOfStopped(values),
    flag,
    report: async <Report>(path: string) => {
      if (isOfStopped(values)) return (await stopped(values, path)) as Report
      try {
        return (await hubReport(hub, path)) as Report
      } catch (cause) {
        throw notInspected(cause)
      }
    },
    request: (path) => {
      if (isOfStopped(values)) throw new Error('the hub is stopped')
      return opsRequest(hub, path)
    },
    follow: async function* (path) {
      try {
        yield* hubItems(hub, path)
      } catch (cause) {
        throw notInspected(cause)
      }
    },
  }
}

const isRefused = (cause: unknown): boolean =>
  (cause as NodeJS.ErrnoException).code === 'ECONNREFUSED'

const ofNone = `; check that the hub runs, and --serve-port; of a stopped hub, inspect status --root-dir=${defaultRootDir} shows what is on the disk`

/** Loaded only for it: it brings the store's modules. */
async function stopped(values: FamilyValues, path: string): Promise<unknown> {
  const { stoppedReport } = await import('../../hub/wiring/stopped.ts')
  const rootDir = values['root-dir'] ?? defaultRootDir
  const cachePath = values['disk-cache-path'] ?? join(rootDir, 'cache')
  return await stoppedReport({ rootDir, cachePath }, path)
}

const watchMs = 2_000

/**
 * Ends with the process. A hub that restarts meanwhile, or cuts a slow reader, is inspected again
 * once it answers; items that were printed before are not printed again.
 */
async function watch(
  { what, one, values, from }: ParsedInspection,
  terminal: Terminal,
): Promise<ExitCode> {
  let last: string | undefined
  let lastItem: object | undefined
  for (;;) {
    try {
      if (one.tail) {
        for await (const items of from.follow(one.tail.path(from))) {
          const added = itemsAfter(lastItem, items)
          lastItem = added.at(-1) ?? lastItem
          terminal.out(addedText(added, values.output, one.tail))
        }
        throw new Error('the hub has ended the report')
      }
      const report = await one.read(from)
      const text = inTurn(report, values.output, () => one.table(report))
      if (text !== last) terminal.out(text)
      last = text
    } catch (cause) {
      const text = `nodehub inspect ${what}: ${messageOf(cause)}\n`
      if (text !== last) terminal.err(text)
      last = text
    }
    await pause(watchMs)
  }
}

/**
 * A report that begins again repeats items. Their times do not tell which: several have the same
 * one, and the clock may be set back.
 */
const itemsAfter = (last: object | undefined, items: readonly object[]): readonly object[] =>
  items.slice(items.findLastIndex((item) => isDeepStrictEqual(item, last)) + 1)

function addedText(
  items: readonly object[],
  format: FamilyValues['output'],
  { table }: NonNullable<Inspection<unknown>['tail']>,
): string {
  if (format === 'table') return table(items)
  return items.map((item) => inTurn(item, format, () => '')).join('')
}

/** One of several reports: JSON in one line, documents of YAML. */
function inTurn(report: unknown, format: FamilyValues['output'], table: () => string): string {
  if (format === 'json') return `${JSON.stringify(report)}\n`
  const text = printed(report, format, table)
  return format === 'yaml' ? `---\n${text}` : `${text}\n`
}
