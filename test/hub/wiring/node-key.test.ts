import t from 'tap'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nodeKeys } from '../../../src/hub/wiring/node-key.ts'

const key = 'a key that is as long as a key is to be'

/** A program that does this. */
function program(directory: string, script: string): string {
  const path = join(directory, `program-${readdirSync(directory).length}`)
  writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o700 })
  return path
}

void t.test('a key that is handed in is the same at each start, and leaves no file', async (t) => {
  const rootDir = t.testdir({ given: key })
  const programs = t.testdir({ given: key, programs: {} })
  const command = program(join(programs, 'programs'), `printf '%s' '${key}'`)
  const ofCommand = { kind: 'command', path: command } as const
  const ofCredential = { kind: 'credential', file: join(programs, 'given') } as const
  const [first, second] = [
    await nodeKeys({ rootDir: join(rootDir, 'state'), storeKey: ofCommand }),
    await nodeKeys({ rootDir: join(rootDir, 'state'), storeKey: ofCredential }),
  ]
  t.strictSame(first.sealing.reveal(), second.sealing.reveal())
  t.strictSame(first.tokens.reveal(), second.tokens.reveal())
  t.notSame(first.sealing.reveal(), first.tokens.reveal(), 'one for each purpose')
  t.equal(first.sealing.reveal().byteLength, 32)
  t.notOk(Buffer.from(first.sealing.reveal()).includes(key.slice(0, 8)))
  t.notOk(readdirSync(rootDir).includes('state'))
})

void t.test('a key of its own is kept in its folder', async (t) => {
  const rootDir = t.testdir({ state: {} })
  const own = { rootDir: join(rootDir, 'state'), storeKey: { kind: 'own' } as const }
  const first = await nodeKeys(own)
  t.strictSame((await nodeKeys(own)).sealing.reveal(), first.sealing.reveal())
  t.strictSame(readdirSync(join(rootDir, 'state')).sort(), ['seal.key', 'token.key'])
})

void t.test('an invalid or missing key is reported without showing it', async (t) => {
  const directory = t.testdir({ short: 'too short' })
  const rejected = async (source: Parameters<typeof nodeKeys>[0]['storeKey']): Promise<string> => {
    const failure = await nodeKeys({ rootDir: directory, storeKey: source }).then(
      () => t.fail('it was taken'),
      (cause: unknown) => cause,
    )
    t.match(failure, { code: 'NO_NODE_KEY' })
    t.notMatch(String(failure), /secret|too short/)
    return String(failure)
  }
  const ofScript = (script: string): Promise<string> =>
    rejected({ kind: 'command', path: program(directory, script) })
  t.match(await rejected({ kind: 'credential', file: join(directory, 'short') }), /gives 9 bytes/)
  t.match(await rejected({ kind: 'credential', file: join(directory, 'none') }), /cannot be read/)
  t.match(await rejected({ kind: 'command', path: join(directory, 'none') }), /run: ENOENT/)
  t.match(await ofScript('echo secret >&2; echo secret; exit 3'), /ended with 3/)
  t.match(await ofScript('echo secret; kill -9 $$'), /was ended by SIGKILL/)
  t.match(await ofScript('echo secret'), /gives 7 bytes/)
  t.match(await ofScript('exec head -c 100000 /dev/zero'), /prints too much/)
  t.match(
    await ofScript(`[ $# = 0 ] && read line || printf '%s' '${key}' | head -c 31`),
    /31 bytes/,
  )
})
