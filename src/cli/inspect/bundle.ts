import { readdirSync, statfsSync, statSync } from 'node:fs'
import { arch, freemem, hostname, release, totalmem, uptime } from 'node:os'
import { join } from 'node:path'
import { elapsed, now, within } from '../../base/clock.ts'
import { wholeAnswer } from '../../base/whole-answer.ts'
import { defaultRootDir } from '../../config/root-dir.ts'
import { messageOf } from '../../config/settings.ts'
import { option } from '../../config/option.ts'
import { text } from '../../config/value.ts'
import type { HubConfigReport } from '../../hub/wiring/config-map.ts'
import type { HubStatus } from '../../hub/wiring/status/status.ts'
import { aligned } from '../aligned.ts'
import { checkConfig } from '../check-config.ts'
import { operatorFile } from '../operator-file.ts'
import { versionText } from '../version.ts'
import { Archive } from './archive.ts'
import { inspection, type Inspected, type InspectionEntry } from './inspection.ts'

/** The files of a bundle, and those that could not be read. */
interface BundleReport {
  readonly file: string
  readonly bytes: number
  readonly names: readonly string[]
  readonly missing: readonly string[]
}

type Inspections = Readonly<Record<string, InspectionEntry>>

/** The time for everything in a bundle. */
const withinMs = 60_000

/** Of the reports of `inspections`. Exit code 1: a part could not be read. */
export const bundle = (inspections: Inspections) =>
  inspection<BundleReport>({
    help: `What cannot be had is named in the archive, in missing.txt: a bundle of a hub that is stopped, or does
not answer, has what there is without it. Read it before you pass it on: it has the names of API
objects, nodes and addresses.
`,
    takesRest: '[-- FLAG...]',
    acts: true,
    ofStopped: true,
    flags: {
      file: option({
        type: text('FILE'),
        defaultShown: 'nodehub-bundle-HOST-TIME.tar.gz in the current folder',
        help: 'The archive, which must not exist yet. Only its owner may read it.',
      }),
    },
    read: async (from) => {
      const archive = new Archive()
      const missing: string[] = []
      const until = elapsed() + withinMs
      for (const [name, content] of await contents(from, inspections)) {
        try {
          const left = Math.max(until - elapsed(), 0)
          const found = await within(left, Promise.resolve(content()))
          if (found === undefined) throw new Error(`it was not had within ${withinMs / 1000} s`)
          archive.add(name, found)
        } catch (cause) {
          missing.push(`${name}: ${messageOf(cause)}`)
        }
      }
      archive.add('missing.txt', missing.map((line) => `${line}\n`).join('') || 'nothing\n')
      const named = from.flag('file')
      const file =
        typeof named === 'string' ? named : `nodehub-bundle-${hostname()}-${timeText()}.tar.gz`
      const bytes = archive.write(operatorFile(file))
      return { file, bytes, names: archive.names, missing }
    },
    table: ({ file, bytes, names, missing }) =>
      `${file} has ${names.length} files, ${bytes} bytes.\n${[...Map.groupBy(missing, reasonOf)]
        .map(([why, lines]) => `missing: ${lines.map(nameOf).join(', ')}: ${why}\n`)
        .join('')}`,
    code: ({ missing }) => (missing.length === 0 ? 0 : 1),
  })

const nameOf = (line: string): string => line.slice(0, line.indexOf(': '))
const reasonOf = (line: string): string => line.slice(line.indexOf(': ') + 2)

const timeText = (): string =>
  new Date(now()).toISOString().replaceAll(/[-:]/g, '').replace(/\..*/, 'Z')

type Content = readonly [name: string, text: () => string | Promise<string>]

/** Each file of a bundle, in the order of their use to a reader. */
async function contents(from: Inspected, inspections: Inspections): Promise<readonly Content[]> {
  const status = once(() => from.report<Partial<HubStatus>>('status'))
  const reports: Content[] = []
  const ofRunning: string[] = []
  for (const [name, { load }] of Object.entries(inspections)) {
    const one = await load()
    // Those that take words are about one object.
    if (one.takes !== undefined || one.acts) continue
    if (from.isStopped && !one.ofStopped) {
      ofRunning.push(`inspect/${name}`)
      continue
    }
    const flag = (flagName: string): unknown =>
      one.flags?.[flagName]?.default ?? from.flag(flagName)
    const report = once(() => one.read({ ...from, flag, rest: undefined }))
    reports.push(
      [`inspect/${name}.txt`, async () => one.table(await report())],
      [`inspect/${name}.json`, async () => json(await report())],
    )
  }
  return [
    ['versions.txt', versions],
    ...reports,
    ...(from.isStopped
      ? [[ofRunning.join(', '), () => absent('each of these reports')] as const]
      : []),
    ['log.json', async () => json((await status()).log ?? absent('the log'))],
    ['readyz.txt', () => answer(from, '/readyz?verbose')],
    ['metrics.txt', () => answer(from, '/metrics')],
    ['check-config.txt', async () => checked(from.rest ?? (await flagsInForce(from)))],
    ['disk.txt', () => disk(from)],
  ]
}

/** The same promise for each call. */
function once<T>(read: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined
  return () => (result ??= read())
}

const json = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`

const versions = (): string =>
  `${versionText()}kernel ${release()}\narchitecture ${arch()}\nhost up for ${Math.round(uptime())} s\nmemory ${totalmem()} bytes, ${freemem()} free\nbundle made at ${new Date(now()).toISOString()}\n`

async function answer(from: Inspected, path: string): Promise<string> {
  const asking = from.request(path)
  asking.end()
  const { status, text: content } = await wholeAnswer(asking, withinMs)
  return status === 200 ? content : `${status}\n${content}`
}

/** The flags with which the running hub would start now, but for secrets. */
async function flagsInForce(from: Inspected): Promise<readonly string[]> {
  if (from.isStopped) throw new Error('give the flags of nodehub start after --')
  const { settings } = await from.report<HubConfigReport>('config')
  return settings.flatMap(({ name, value, origin, redacted }) =>
    origin === undefined || redacted || name === 'config' ? [] : [`--${name}=${value}`],
  )
}

/** The result of check-config for the flags of the hub. */
async function checked(flags: readonly string[]): Promise<string> {
  let said = ''
  const add = (line: string): void => void (said += line)
  const code = await checkConfig.run(flags, { out: add, err: add })
  return `${said}exit code ${code}\n`
}

/** Of a stopped hub. */
function absent(what: string): never {
  throw new Error(`${what} is with the running hub only`)
}

const mostFiles = 1_000

/** The file systems of the state, and its files with their sizes; nothing of their content. */
async function disk(from: Inspected): Promise<string> {
  const folders = new Set(await stateFolders(from))
  const systems = [...folders].map((folder) => {
    const { bsize, blocks, bavail, files, ffree } = statfsSync(folder)
    return [folder, ...[bsize * blocks, bsize * bavail, files, ffree].map(String)]
  })
  const files = [...folders].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .slice(0, mostFiles)
      .flatMap((name) => {
        const stat = statSync(join(folder, name), { throwIfNoEntry: false })
        return stat ? [[join(folder, name), stat.mode.toString(8), String(stat.size)]] : []
      }),
  )
  return `${aligned(['FILE SYSTEM OF', 'BYTES', 'FREE', 'INODES', 'FREE'], systems)}\n${aligned(['FILE', 'MODE', 'BYTES'], files)}`
}

/** As the running hub has them; else as flags name a stopped one, or by default. */
async function stateFolders(from: Inspected): Promise<readonly string[]> {
  const flag = (name: string): string | undefined => {
    const value = from.flag(name)
    return typeof value === 'string' ? value : undefined
  }
  const root = flag('root-dir')
  if (root !== undefined || flag('disk-cache-path') !== undefined)
    return [root ?? defaultRootDir, flag('disk-cache-path') ?? []].flat()
  const nothing: Partial<HubConfigReport> = {}
  const { settings = [] } = await from.report<typeof nothing>('config').catch(() => nothing)
  const named = settings.flatMap(({ name, value }) =>
    name === 'root-dir' || name === 'disk-cache-path' ? [value] : [],
  )
  return named.length > 0 ? named : [defaultRootDir]
}
