import t from 'tap'
import { Secret } from '../../../src/base/secret.ts'
import type { Incoming } from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { mayInspect } from '../../../src/hub/identity/inspectors.ts'
import { SocketOwners } from '../../../src/hub/identity/socket-owner.ts'

const request = (token?: string): Incoming => ({
  id: 'id',
  method: 'GET',
  url: '/boot',
  headers: new HeaderList(token === undefined ? [] : ['Authorization', `Bearer ${token}`]),
  peer: {
    address: '127.0.0.1',
    port: 40_000,
    localAddress: '127.0.0.1',
    localPort: 10_267,
    inode: '2',
  },
  upgrade: false,
  signal: new AbortController().signal,
})

/** The table of a kernel in which `uid` owns the client's end of the connection. */
const ownedBy = (uid: number): SocketOwners =>
  new SocketOwners(
    async () =>
      ` 0: 0100007F:9C40 0100007F:281B 01 00000000:00000000 00:00000000 00000000 ${uid} 0 1 1
  1: 0100007F:281B 0100007F:9C40 01 00000000:00000000 00:00000000 00000000 0 0 2 1`,
  )

void t.test("root and holders of the hub's own token may inspect; no one else", async (t) => {
  const may = (uid: number, shown?: string, own?: string): Promise<boolean> =>
    mayInspect(request(shown), {
      token: own === undefined ? undefined : new Secret(own),
      owners: ownedBy(uid),
    })
  t.equal(await may(0), true)
  t.equal(await may(0, 'wrong', 'own'), true, 'a wrong token counts for no less than none')
  t.equal(await may(1000, 'own', 'own'), true)
  t.equal(await may(1000, 'wrong', 'own'), false)
  t.equal(await may(1000, undefined, 'own'), false)
  t.equal(await may(1000, 'shown'), false, 'the hub has no token')
  t.equal(await may(1000), false)
})
