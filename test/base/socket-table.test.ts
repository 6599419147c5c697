import { readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  established,
  establishedAt,
  inodeIn,
  inodeOf,
  establishedWith,
  mostReadingMs,
  listening,
  socketsIn,
} from '../../src/base/socket-table.ts'
import { rootFolder } from '../kit/root-folder.ts'
import { setClock } from '../kit/set-clock.ts'

/** As Linux 6.18 prints it. */
const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode                                                     
   0: 0100007F:2814 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1337 1 ffff888100000000 100 0 0 10 0                   
   1: 0100007F:D431 0100007F:2814 01 00000000:00000000 02:000005DC 00000000  1000        0 4711 2 ffff888100000001 20 4 30 10 -1                 
   2: 0100007F:2814 0100007F:D432 06 00000000:00000000 03:00000AE1 00000000     0        0 0 3 ffff888100000002                                  
`

void t.test('the table’s header is not parsed as a socket', async (t) => {
  t.strictSame(
    [...socketsIn(table)],
    [
      {
        local: '0100007F:2814',
        remote: '00000000:0000',
        state: listening,
        uid: 0,
        inode: '1337',
      },
      {
        local: '0100007F:D431',
        remote: '0100007F:2814',
        state: established,
        uid: 1000,
        inode: '4711',
      },
      { local: '0100007F:2814', remote: '0100007F:D432', state: '06', uid: 0, inode: '0' },
    ],
  )
  t.strictSame([...socketsIn('')], [])
})

void t.test('a file descriptor leads to a socket or to something else', async (t) => {
  t.equal(inodeIn('socket:[4711]'), '4711')
  for (const link of ['/dev/null', 'pipe:[4711]', 'anon_inode:[eventpoll]'])
    t.equal(inodeIn(link), undefined, link)
})

/** What is found of these ends in a table that comes in pieces of so many bytes. */
function found(text: string, pieceBytes: number, ...ends: string[]): Promise<string> {
  let at = 0
  return establishedWith(ends, async () => text.slice(at, (at += pieceBytes)))
}

const ends = '0100007F:D431 0100007F:2814'

void t.test('established sockets are found by their ends across read boundaries', async (t) => {
  const line = `${table.split('\n')[2]}\n`
  for (const pieceBytes of [1, 7, 150, 4096, 1 << 20])
    t.equal(
      await found(table, pieceBytes, '0100007F:2814 0100007F:D432', ends),
      line,
      `${pieceBytes}`,
    )
  t.equal(await found(table, 4096, '0100007F:D431 0100007F:2815'), '', 'the remote end is another')
  t.equal(
    await found(table, 4096, '0200007F:D431 0100007F:2814'),
    '',
    'the local address is another',
  )
  const later = `   7: ${ends} 01 later\n`
  t.equal(await found(table + later, 4096, ends), line, 'the first one counts')
  t.equal(await found(`   7: ${ends} 02 \n${later}`, 4096, ends), later, 'of the established ones')
})

void t.test('reading stops once the sockets looked for are found', async (t) => {
  let reads = 0
  await establishedWith([ends], async () => {
    reads++
    return table
  })
  t.equal(reads, 1)
})

void t.test('lines that do not parse are skipped', async (t) => {
  for (const text of ['', '\n\n', ':\n', 'x: y:D431\n', `1: ${ends} 01 `, 'x'.repeat(200_000)])
    t.equal(await found(text, 4096, ends), '', text.slice(0, 20))
  const line = `1: ${ends} 01 \n`
  t.equal(
    await found(`${'x'.repeat(200_000)}\n${line}`, 1 << 20, ends),
    line,
    'what has none is passed over',
  )
})

/** A file that holds the table. */
function tableFile(t: Test): string {
  const path = join(rootFolder(t), 'tcp')
  writeFileSync(path, table)
  return path
}

/** The files that this process has open. */
function openFiles(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      return []
    }
  })
}

void t.test('a missing table is distinguished from an empty one', async (t) => {
  const path = tableFile(t)
  await t.rejects(establishedAt(`${path}6`, [ends]), { code: 'ENOENT' })
  t.equal(await establishedAt(path, [ends]), `${table.split('\n')[2]}\n`)
  t.equal(await establishedAt(path, ['0100007F:D431 0100007F:2815']), '')
})

void t.test('a table that is not read in five seconds is given up', async (t) => {
  const path = tableFile(t)
  const clock = setClock(t)
  const late = function* () {
    clock.forward(mostReadingMs + 1)
    yield ends
  }
  await t.rejects(establishedAt(path, late()), {
    code: 'SOCKET_TABLE_TOO_LONG',
    message: `${path} was not read in 5 seconds`,
  })
})

void t.test(
  'a reading leaves no file open',
  { skip: process.platform !== 'linux' && '/proc is needed' },
  async (t) => {
    const path = tableFile(t)
    for (const asked of [[ends], []]) await establishedAt(path, asked)
    t.notOk(openFiles().includes(path))
  },
)

void t.test('a closed fd has no inode', async (t) => {
  t.equal(inodeOf(1 << 20), undefined)
})
