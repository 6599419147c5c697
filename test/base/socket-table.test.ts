import t from 'tap'
import { established, inodeIn, listening, socketsIn } from '../../src/base/socket-table.ts'

/** As Linux 6.18 prints it. */
const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode                                                     
   0: 0100007F:2814 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1337 1 ffff888100000000 100 0 0 10 0                   
   1: 0100007F:D431 0100007F:2814 01 00000000:00000000 02:000005DC 00000000  1000        0 4711 2 ffff888100000001 20 4 30 10 -1                 
   2: 0100007F:2814 0100007F:D432 06 00000000:00000000 03:00000AE1 00000000     0        0 0 3 ffff888100000002                                  
`

void t.test('the sockets of the table are told without its head', async (t) => {
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
