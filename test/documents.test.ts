import t from 'tap'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parse } from 'yaml'
import { manifests } from '../src/cli/manifests.ts'
import { readConfig } from '../src/config/config.ts'
import { readNodeFile } from './kit/node-files.ts'
import { rowsUnder, tables } from './tables.ts'

const read = (path: string) => readFileSync(path, 'utf8')

for (const { file, heading, rows } of tables) {
  void t.test(`${file}, ${heading}: a row for each there is, and no other`, async (t) => {
    t.strictSame(rowsUnder(read(file), heading), rows(), 'node test/write-tables.ts mends it')
  })
}

void t.test('no document points to a file that is not there', async (t) => {
  const documents = globSync(['*.md', 'docs/**/*.md', 'filters/*.md', 'bench/*.md'])
  t.ok(documents.length >= 4)
  for (const document of documents) {
    const links = [...read(document).matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].map(
      ([, path = '']) => path,
    )
    for (const path of links)
      t.ok(existsSync(join(dirname(document), path)), `${document}: ${path}`)
  }
})

void t.test('ARCHITECTURE.md names no file or folder that is not there', async (t) => {
  const named = [
    ...read('ARCHITECTURE.md').matchAll(/`((?:src|test|bench|filters|docs)\/[^`\s*]*)`/g),
  ]
  t.ok(named.length > 3)
  for (const [, path = ''] of named) t.ok(existsSync(path), path)
})

const migration = read('docs/migrate-from-yurthub.md')

/** Code blocks of the page for those who come from yurthub. */
const blocks = (language: string): string[] =>
  [...migration.matchAll(/^```(\w*)\n([\s\S]*?)^```/gm)]
    .filter(([, found]) => found === language)
    .map(([, , text = '']) => text)

/** What the hub says of flags on a node that joined with kubeadm. */
function notesOn(flags: readonly string[]): readonly string[] {
  const result = readConfig({ argv: flags, env: {}, hostname: 'edge-1', readFile: readNodeFile })
  if ('mistakes' in result) throw new Error(`${flags.join(' ')}: ${result.mistakes.join('; ')}`)
  return result.notes
}

/** Of these, the notes on flags. */
const flagNotesOn = (flags: readonly string[]): string[] =>
  notesOn(flags).filter((note) => note.startsWith('--'))

const flagsIn = (words: readonly string[]): string[] =>
  words.filter((word) => /^--[a-z]/.test(word))

void t.test(
  'units of yurthub and of the hub carry the same flags, and start the hub',
  async (t) => {
    const [yurthub = [], hub = []] = blocks('ini').map((unit) => {
      const variables = new Map(
        [...unit.matchAll(/^Environment="(\w+)=(.*)"$/gm)].map(([, name, value]) => [name, value]),
      )
      const line = /^ExecStart=(.+)$/m.exec(unit)?.[1] ?? ''
      return line.replaceAll(/\$(\w+)/g, (_, name: string) => variables.get(name) ?? '').split(' ')
    })
    t.strictSame(hub.slice(hub.indexOf('start') + 1), yurthub.slice(1))
    t.strictSame(
      flagNotesOn(hub.slice(hub.indexOf('start') + 1)).map((note) => note.split(' ')[0]),
      ['--nodepool-name', '--namespace'],
    )
  },
)

interface Container {
  readonly command?: readonly string[]
  readonly args?: readonly string[]
}

const containerIn = (manifest: string): Container => {
  const { spec } = parse(manifest) as { spec: { containers: readonly [Container] } }
  return spec.containers[0]
}

void t.test('the flags of yurthub’s static pod start the hub, and so do its own', async (t) => {
  const [yurthub = '', hub = ''] = blocks('yaml')
  const { command: [program, ...given] = [] } = containerIn(yurthub)
  t.equal(program, 'yurthub')
  t.doesNotThrow(() => notesOn(given.map((flag) => flag.replace('$(NODE_NAME)', 'edge-1'))))
  const line = blocks('').find((text) => text.startsWith('nodehub manifests')) ?? ''
  const printed: string[] = []
  const terminal = {
    out: (text: string) => printed.push(text),
    err: (text: string) => t.fail(text),
  }
  t.equal(await manifests.run(line.trim().split(' ').slice(2), terminal), 0)
  t.match(parse(printed.join('')), parse(hub))
  t.strictSame(containerIn(hub).args, containerIn(printed.join('')).args)
})

void t.test('what check-config says of yurthub’s flags is what the page shows', async (t) => {
  const [line = '', ...said] =
    blocks('')
      .find((text) => text.startsWith('$ nodehub check-config'))
      ?.trim()
      .split('\n') ?? []
  t.strictSame(
    said,
    flagNotesOn(flagsIn(line.split(' '))).map((note) => `note: ${note}`),
  )
})
