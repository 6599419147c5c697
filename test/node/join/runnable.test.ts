import t from 'tap'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { oldestNode } from '../../../src/base/own-version.ts'
import { whyNotRunnable } from '../../../src/node/join/runnable.ts'

// Not below a folder for temporary files, in which others may write.
const folder = mkdtempSync(join(homedir(), '.nodehub-runnable-'))
t.teardown(() => rmSync(folder, { recursive: true }))
chmodSync(folder, 0o755)

const program = (name: string, script: string): string => {
  const path = join(folder, name)
  writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return path
}

const why = (node: string): Promise<string | undefined> => whyNotRunnable('/', { folder, node })

void t.test('systemd starts the hub by a Node that is new enough, and no other', async (t) => {
  const oldest = oldestNode()
  t.ok(oldest >= 26)
  t.equal(await why(program('new', `echo v${oldest}.0.0`)), undefined)
  t.equal(await why(program('newer', `echo v${oldest + 1}.2.3`)), undefined)
  const advice = `put Node ${oldest} or later there`
  const old = program('old', `echo v${oldest - 1}.9.9`)
  t.equal(
    await why(old),
    `${old} is Node v${oldest - 1}.9.9, and the hub needs ${oldest} or later: ${advice}`,
  )
  const other = program('other', 'echo Python 3.14')
  t.equal(await why(other), `${other} does not say that it is Node: ${advice}`)
  const failing = program('failing', 'exit 3')
  t.equal(await why(failing), `${failing} does not run (3): ${advice}`)
  const chatty = program('chatty', 'while :; do echo vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv; done')
  t.match(await why(chatty), 'does not run')
})

void t.test('a program that others may write is not started', async (t) => {
  const marker = join(folder, 'started')
  const node = program('changed', `touch ${marker}; echo v99.0.0`)
  chmodSync(node, 0o777)
  t.match(await why(node), /changed may be written by others than its owner \(mode 777\)/)
  t.throws(() => rmSync(marker), { code: 'ENOENT' })
})

void t.test(
  'links in an image resolve inside the image, and each path is visited once',
  async (t) => {
    const image = join(folder, 'image')
    const files = join(image, 'opt/nodehub')
    mkdirSync(join(image, 'usr/local/bin'), { recursive: true, mode: 0o755 })
    mkdirSync(join(image, 'etc'))
    mkdirSync(join(image, 'srv/more'), { recursive: true })
    mkdirSync(files, { recursive: true })
    writeFileSync(join(image, 'usr/local/bin/node'), '')
    writeFileSync(join(image, 'srv/more/own.js'), '')
    // Of the machine on which the image is mounted nothing is read.
    symlinkSync('/etc', join(files, 'etc'))
    // Gone through by their names, these had more paths than can be counted.
    for (const name of ['one', 'two', 'three']) symlinkSync('.', join(files, name))
    symlinkSync('/srv/more', join(files, 'more'))
    t.equal(await whyNotRunnable(image), undefined)
    chmodSync(join(image, 'srv/more/own.js'), 0o666)
    t.match(await whyNotRunnable(image), /\/srv\/more\/own\.js may be written by others/)
  },
)
