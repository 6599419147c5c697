/**
 * The work that an unproven caller can cause at once on one connection: each request is short.
 * Counted in requests, as time depends on the machine.
 */
import t from 'tap'
import type { Incoming, WireReply } from '../../src/http/exchange/exchange.ts'
import { startFlooded } from '../kit/flooding.ts'
import { frame, get as getOver2 } from '../kit/http2-frames.ts'
import { get, wholeReply, startListener } from '../kit/listener.ts'
import { inTime } from '../kit/until.ts'

const unauthorized = { ...wholeReply('no'), status: 401 }

/** Counts requests other than the node's. */
class Counted {
  asked = 0

  readonly handler = async (incoming: Incoming): Promise<WireReply> => {
    if (incoming.url === '/node') {
      incoming.onProven?.(true)
      return wholeReply('ok')
    }
    this.asked += 1
    return unauthorized
  }
}

const many = 2_000

void t.test('over HTTP/1.1 a flood of requests on one connection is soon over', async (t) => {
  const counted = new Counted()
  const { dial } = await startListener(t, counted.handler)
  const kubelet = await dial()
  t.equal((await kubelet.write(get('/node')).answer()).body, 'ok')
  const attackers = await Promise.all(Array.from({ length: 20 }, dial))
  for (const attacker of attackers) attacker.write(get().repeat(many))
  t.equal((await inTime('the node’s answer', kubelet.write(get('/node')).answer())).body, 'ok')
  await inTime('all to be cut', Promise.all(attackers.map(({ ended }) => ended)))
  t.ok(counted.asked > 0)
  t.ok(counted.asked <= attackers.length * 64, `${counted.asked} requests`)
})

void t.test('an HTTP/2 connection begins at most 100 of its first streams', async (t) => {
  const counted = new Counted()
  const { dial } = await startFlooded(t, counted.handler)
  const attacker = await dial()
  const streams = Array.from({ length: many }, (_, i) => getOver2(2 * i + 1))
  attacker.write(Buffer.concat([...streams, frame(6, 0, 0, Buffer.from('all read'))]))
  await Promise.race([attacker.until('all read').catch(() => undefined), attacker.closed])
  t.ok(counted.asked <= 100, `${counted.asked} requests`)
})
