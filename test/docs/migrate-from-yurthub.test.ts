import t from 'tap'
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { manifests } from '../../src/cli/manifests.ts'
import { readConfig } from '../../src/config/config.ts'
import { readNodeFile } from '../kit/node-files.ts'

const page = readFileSync('docs/migrate-from-yurthub.md', 'utf8')

/** Code blocks of the page. */
const blocks = (language: string): string[] =>
  [...page.matchAll(/^```(\w*)\n([\s\S]*?)^```/gm)]
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
      [],
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

void t.test(
  'the flags of yurthub’s static pod start the hub with the kubelet’s certificate, and so do its own',
  async (t) => {
    const [yurthub = '', hub = ''] = blocks('yaml')
    const { command: [program, ...given] = [] } = containerIn(yurthub)
    t.equal(program, 'yurthub')
    const flags = given.map((flag) => flag.replace('$(NODE_NAME)', 'edge-1'))
    // A node that has joined may have none any more.
    t.throws(() => notesOn(flags), /--bootstrap-file: .* cannot be read/)
    t.doesNotThrow(() => notesOn([...flags, '--bootstrap-mode=kubeletcertificate']))
    const line =
      blocks('').find((text) => text.startsWith('nodehub manifests --part static-pod')) ?? ''
    const printed: string[] = []
    const terminal = {
      out: (text: string) => printed.push(text),
      err: (text: string) => t.fail(text),
    }
    t.equal(await manifests.run(line.trim().split(' ').slice(2), terminal), 0)
    t.match(parse(printed.join('')), parse(hub))
    t.strictSame(containerIn(hub).args, containerIn(printed.join('')).args)
  },
)

void t.test('the page shows check-config’s notes on yurthub’s flags', async (t) => {
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
