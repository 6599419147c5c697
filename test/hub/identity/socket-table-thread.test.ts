import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { keepProcessAlive } from '../../../src/base/clock.ts'
import { SocketTableThread } from '../../../src/hub/identity/socket-table-thread.ts'
import { rootFolder } from '../../kit/root-folder.ts'

const ends = '0100007F:9C40 0100007F:2815'
const line = `   1: ${ends} 01 00000000:00000000 00:00000000 00000000 7 0 4711 1\n`

function start(t: Test): { thread: SocketTableThread; path: string } {
  const thread = new SocketTableThread()
  t.teardown(() => thread[Symbol.asyncDispose]())
  const path = join(rootFolder(t), 'tcp')
  writeFileSync(path, `  sl  local_address rem_address\n   0: ${ends}0 01\n${line}`)
  return { thread, path }
}

void t.test('each query gets the lines of its own connections', async (t) => {
  const { thread, path } = start(t)
  t.strictSame(
    await Promise.all([
      thread.lines(path, [ends]),
      thread.lines(path, []),
      thread.lines(path, ['0100007F:9C40 0100007F:2816', ends]),
    ]),
    [line, '', line],
  )
})

/** The files that this process has open, those of its threads included. */
function openFiles(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      return []
    }
  })
}

void t.test(
  'a lookup leaves no file open',
  { skip: process.platform !== 'linux' && '/proc is needed' },
  async (t) => {
    const { thread, path } = start(t)
    for (const asked of [[ends], []]) await thread.lines(path, asked)
    t.strictSame(
      openFiles().filter((file) => file === path),
      [],
    )
  },
)

void t.test('a missing table is distinguished from an empty one', async (t) => {
  const { thread, path } = start(t)
  await t.rejects(thread.lines(`${path}6`, [ends]), { code: 'ENOENT' })
  t.equal(await thread.lines(path, [ends]), line, 'and the thread goes on')
})

void t.test(
  'lookups of a thread that has ended fail, and the next one starts another',
  async (t) => {
    const { thread, path } = start(t)
    const asked = thread.lines(path, [ends])
    await Promise.all([
      t.rejects(asked, { message: 'the thread that reads the socket table has ended' }),
      thread[Symbol.asyncDispose](),
    ])
    t.equal(await thread.lines(path, [ends]), line)
  },
)

void t.test('a thread that fails takes only its pending lookups with it', async (t) => {
  const { thread, path } = start(t)
  const started = once(process, 'worker') as Promise<[Worker]>
  t.equal(await thread.lines(path, [ends]), line)
  const [worker] = await started
  // The thread keeps no process alive.
  using _staying = keepProcessAlive()
  worker.postMessage(null)
  await t.rejects(thread.lines(path, [ends]), {
    message: 'the thread that reads the socket table has ended',
    cause: TypeError,
  })
  t.equal(await thread.lines(path, [ends]), line)
})

void t.test('a query without a file descriptor for the thread fails alone', async (t) => {
  const program = join(import.meta.dirname, 'socket-table-full.ts')
  const said = execFileSync(
    'sh',
    ['-c', 'ulimit -n 64; exec "$0" "$@"', process.execPath, program],
    {
      timeout: 60_000,
    },
  )
  t.strictSame(JSON.parse(String(said)), [true, '', ''])
})
