/**
 * An unprivileged program sends a request whose body is larger than Node reads ahead, and resets
 * its connection. Node does not notice, and the port is free: a program of root may take it while
 * the hub looks up the owner of the connection.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import type { Incoming } from '../../src/http/exchange/exchange.ts'
import { authenticate, type AuthenticationRules } from '../../src/hub/identity/caller.ts'
import { Claims } from '../../src/hub/identity/claims.ts'
import { ClusterKeys } from '../../src/hub/identity/cluster-keys.ts'
import { TokenVerdicts } from '../../src/hub/identity/token-verdicts.ts'
import { SocketOwners } from '../../src/hub/identity/socket-owner.ts'
import { establishedAt } from '../../src/base/socket-table.ts'
import { wholeReply, startListener } from '../kit/listener.ts'
import { startAs, type ProcessAs } from '../kit/other-user.ts'
import { until } from '../kit/until.ts'
import { noOutage, nothingAccepted } from '../kit/no-outage.ts'

const skip =
  process.platform !== 'linux' || process.getuid?.() !== 0 ? 'only root can be two users' : false

const another = 65_534

/** A loopback address from which no other program connects: otherwise the port might be taken. */
const localAddress = '127.77.0.1'

/**
 * Sends the head of a POST with much of its body. On a line of input it resets the connection, and
 * prints that.
 */
const sender = (port: number, bodyBytes: number): string => `
const { createInterface } = require('node:readline')
const socket = require('node:net').connect({ host: '127.0.0.1', port: ${port}, localAddress: '${localAddress}' }, () => {
  socket.write('POST /api/v1/namespaces/default/events HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: ${2 * bodyBytes}\\r\\n\\r\\n')
  socket.write(Buffer.alloc(${bodyBytes}, 32))
})
socket.on('error', () => undefined)
createInterface({ input: process.stdin }).once('line', () => {
  socket.once('close', () => console.log('reset'))
  socket.resetAndDestroy()
  process.stdin.destroy()
})
`

/** The kernel's tables; the first read waits for a release. */
function heldTables() {
  const asked = Promise.withResolvers<void>()
  const letGo = Promise.withResolvers<void>()
  const owners = new SocketOwners(async (family, ends) => {
    asked.resolve()
    await letGo.promise
    return establishedAt(`/proc/net/${family}`, ends)
  })
  return { owners, asked: asked.promise, letGo: letGo.resolve }
}

async function startHub(t: Test) {
  const { owners, asked, letGo } = heldTables()
  const proofs = new TokenVerdicts('/nowhere/proofs.json', () => undefined)
  const rules: AuthenticationRules = {
    nodeName: 'edge-1',
    plainServed: true,
    anonymousLoopback: 'root',
    claims: new Claims(Buffer.from('key'), proofs, new ClusterKeys('/nowhere/keys.json')),
    owners,
    accepted: nothingAccepted,
    outage: noOutage,
  }
  const verdict = Promise.withResolvers<string>()
  const { listener, seen } = await startListener(t, async (incoming) => {
    try {
      verdict.resolve((await authenticate(incoming, rules)).identity)
    } catch {
      verdict.resolve('refused')
    }
    return wholeReply('')
  })
  return { port: listener.port, seen, asked, letGo, verdict: verdict.promise }
}

const send = (t: Test, uid: number, port: number): ProcessAs => {
  const started = startAs(uid, sender(port, 300_000))
  t.teardown(() => started.process.kill())
  return started
}

/** Resolves once Node reads no more of a body that is not read. */
async function readAhead({ body }: Incoming): Promise<void> {
  await until('the body to fill its buffer', () => {
    return !body || body.readableLength >= body.readableHighWaterMark
  })
}

async function reset({ process: { stdin, stdout }, failed }: ProcessAs): Promise<void> {
  if (!stdin || !stdout) throw new Error('it has no pipes')
  const said = once(createInterface({ input: stdout }), 'line')
  stdin.write('now\n')
  await Promise.race([said, failed])
}

async function connectedFrom(t: Test, localPort: number, port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, localAddress, localPort })
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

void t.test(
  'a connection that was reset is not root’s, though root reuses its port',
  { skip },
  async (t) => {
    const hub = await startHub(t)
    const attacker = send(t, another, hub.port)
    await Promise.race([hub.asked, attacker.failed])
    const [request] = hub.seen
    if (!request) throw new Error('no request was seen')
    await readAhead(request)
    await reset(attacker)
    await connectedFrom(t, request.peer.port, hub.port)
    t.equal(request.signal.aborted, false, 'Node has not heard of the reset')
    hub.letGo()
    t.equal(await hub.verdict, 'refused')
  },
)

void t.test(
  'a request with a large body is the node’s while its connection is root’s',
  { skip },
  async (t) => {
    const hub = await startHub(t)
    const program = send(t, 0, hub.port)
    await Promise.race([hub.asked, program.failed])
    hub.letGo()
    t.equal(await hub.verdict, 'node')
  },
)
