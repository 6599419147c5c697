import t from 'tap'
import { StatusError } from '../../../src/api/kube/status.ts'
import { withOwnHost } from '../../../src/hub/pipeline/pipeline.ts'
import { emptyReply, exchangeOf } from '../../kit/exchange.ts'

const handle = withOwnHost(new Set(['edge-1', '169.254.2.1']))(async () => emptyReply)

/** The code a request with these fields is answered with, at the address where it came in. */
async function code(headers: Record<string, string>, localAddress = '127.0.0.1'): Promise<number> {
  const exchange = exchangeOf('/version', { headers })
  try {
    const incoming = { ...exchange, peer: { ...exchange.peer, localAddress } }
    const answer = await handle(incoming)
    return answer.kind === 'upgrade' ? 101 : answer.status
  } catch (error) {
    return error instanceof StatusError ? error.status.code : -1
  }
}

void t.test('on loopback the hub is called by loopback’s names and its own', async (t) => {
  const own = [
    '127.0.0.1:10261',
    'localhost',
    'LOCALHOST:1',
    '[::1]:10261',
    '127.1.2.3',
    'Edge-1:80',
    '169.254.2.1',
  ]
  for (const Host of own) t.equal(await code({ Host }), 200, Host)
  t.equal(await code({}), 200, 'HTTP/1.0 has no Host')
  for (const Host of [
    'evil.example',
    '192.0.2.1:10261',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
  ]) {
    t.equal(await code({ Host }), 403, Host)
  }
  t.equal(await code({ Host: 'evil.example' }, '::1'), 403)
  t.equal(await code({ Host: 'evil.example' }, '::ffff:127.0.0.1'), 403)
})

void t.test('no web page is served on loopback, not even one of this host', async (t) => {
  t.equal(await code({ Host: 'localhost', Origin: 'http://localhost' }), 403)
  t.equal(await code({ Host: 'localhost', Origin: 'null' }), 403)
})

void t.test('elsewhere names are the operator’s to give', async (t) => {
  t.equal(await code({ Host: 'hub.example' }, '192.0.2.7'), 200)
})

void t.test('what was served once makes nothing else familiar', async (t) => {
  t.equal(await code({ Host: 'hub.example' }, '192.0.2.7'), 200)
  t.equal(await code({ Host: 'hub.example' }), 403, 'the same name on loopback')
  t.equal(await code({}), 200)
  t.equal(await code({ Host: 'undefined' }), 403)
  for (let i = 0; i < 2; i++) t.equal(await code({ Host: 'edge-1' }), 200)
  t.equal(await code({ Host: 'edge-1', Origin: 'http://edge-1' }), 403)
  for (let i = 0; i < 100; i++) t.equal(await code({ Host: `127.0.0.1:${i + 1}` }), 200)
})
