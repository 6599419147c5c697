import t from 'tap'
import type { BytesReply, WatchReply } from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { decodeWatch } from '../../../src/hub/pipeline/decode-objects.ts'
import { objectRepresentation } from '../../../src/api/request/representation.ts'
import { event } from '../cache/recording.ts'
import { failingSource } from '../../kit/failing-source.ts'

const representation = objectRepresentation('json')

/** A watch that tells of one pod and fails then. */
function failing(cause: Error): WatchReply {
  const reply: BytesReply = {
    kind: 'bytes',
    from: 'cloud',
    status: 200,
    headers: new HeaderList(['Content-Type', 'application/json']),
    source: failingSource(event('ADDED', 'a', 1), cause),
  }
  const read = decodeWatch(reply, representation)
  if (read.kind !== 'watch') throw new Error('it is no watch')
  return read
}

void t.test('a watch whose stream breaks ends cleanly', async (t) => {
  const groups = await Array.fromAsync(failing(new Error('reset by peer')).events)
  t.equal(groups.flat().length, 1)
})

void t.test('a watch that a programming error ends is a break', async (t) => {
  await t.rejects(Array.fromAsync(failing(new TypeError('x is not a function')).events), TypeError)
})
