import t from 'tap'
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { Agent as PlainAgent, request as plainly } from 'node:http'
import { connect } from 'node:http2'
import { Agent as TlsAgent, request as securely } from 'node:https'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pause, turn } from '../../src/base/clock.ts'
import type { Client } from '../kit/client.ts'
import {
  allServices,
  podsOfNode,
  secrets,
  service,
  services,
  type CloudServer,
} from '../kit/cloud.ts'
import { startCloud } from '../kit/hub.ts'
import { openStream } from '../kit/http2.ts'
import { signal, startHubProcess, type HubProcess } from '../kit/hub-process.ts'
import { dial } from '../kit/wire/wire.ts'
import { inTime, until } from '../kit/until.ts'

t.setTimeout(300_000) // a process that starts takes its time on a busy machine

const aPod = '/api/v1/namespaces/default/pods/a'

/**
 * Often enough to meet a moment in which a port is nobody's, and seldom enough to leave the
 * processor to the process that starts.
 */
const oftenMs = 3

/**
 * Gets an object, again and again, until told that it is enough; resolves to every status that was
 * answered.
 */
function asking(client: Client): { enough(): Promise<readonly number[]> } {
  let over = false
  const statuses: number[] = []
  const done = (async () => {
    while (!over) {
      statuses.push((await client.get(aPod)).status)
      await pause(oftenMs)
    }
    return statuses
  })()
  return {
    enough: () => {
      over = true
      return done
    },
  }
}

/** Whether another program could listen there. */
async function canBeTaken(port: number, address = '127.0.0.1'): Promise<boolean> {
  const server = createServer()
  const taken = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, address, () => resolve(true))
  })
  server.close()
  await turn() // an address in use is told without a turn of the loop
  return taken
}

/**
 * Tries to take the port at either address of loopback, until told that it is enough; resolves to
 * how often that succeeded.
 */
function coveting(port: number): { enough(): Promise<number> } {
  let over = false
  let taken = 0
  const done = (async () => {
    while (!over) {
      for (const address of ['127.0.0.1', '::1']) taken += (await canBeTaken(port, address)) ? 1 : 0
      await pause(oftenMs)
    }
    return taken
  })()
  return {
    enough: () => {
      over = true
      return done
    },
  }
}

/**
 * Watches as client-go does: from the last version seen, again when a watch has ended; until
 * `count` events were seen.
 */
async function watching(
  client: Client,
  from: string,
  count: number,
  path = podsOfNode,
): Promise<readonly string[]> {
  const seen: string[] = []
  const describe = (): unknown => seen
  const reading = readInto(seen, client, from, count, path)
  // Processes start meanwhile, one after the other.
  await inTime(`${count} events`, reading, { seconds: 180, describe })
  return seen
}

async function readInto(
  seen: string[],
  client: Client,
  from: string,
  count: number,
  path: string,
): Promise<void> {
  let resourceVersion = from
  while (seen.length < count) {
    const watch = await client.watch(path, { resourceVersion })
    if (watch.status !== 200) throw new Error(`a watch was answered ${watch.status}`)
    for (let event = await watch.next(); event; event = await watch.next()) {
      const { name, resourceVersion: version } = event.object['metadata'] as Record<string, string>
      resourceVersion = version ?? ''
      seen.push(`${event.type} ${name}`)
      if (seen.length === count) break
    }
    watch.hangUp()
  }
}

void t.test(
  'through a hot restart no request is refused or cut off, and no event comes twice',
  async (t) => {
    const cloud = await startCloud(t)
    cloud.addPods('a')
    const hub = await startHubProcess(t, { upstreams: [cloud] })
    const kubelet = hub.as('kubelet')
    t.equal((await kubelet.get(aPod)).status, 200)
    const asked = [asking(kubelet), asking(kubelet)]
    const coveted = [hub.proxyPort, hub.securePort, hub.opsPort].map(coveting)
    const rounds = ['1', '2']
    const names = rounds.flatMap((round) => [`before-${round}`, `after-${round}`])
    const { resourceVersion } = await kubelet.list(podsOfNode)
    const watched = watching(kubelet, resourceVersion, names.length)
    let { pid } = hub
    for (const round of rounds) {
      cloud.addPods(`before-${round}`)
      const from = hub.lines.length
      signal(pid, 'SIGUSR2')
      const line = await hub.says(/^the next process serves/, from)
      t.not(line.pid, pid)
      pid = line.pid ?? 0
      cloud.addPods(`after-${round}`)
    }
    t.equal(await hub.ended(), 0, 'the first process has ended well')
    t.strictSame(
      await watched,
      names.map((name) => `ADDED ${name}`),
    )
    const statuses = (await Promise.all(asked.map((each) => each.enough()))).flat()
    t.ok(statuses.length > 10)
    t.ok(statuses.every((status) => status === 200))
    for (const each of coveted)
      t.equal(await each.enough(), 0, 'no other program could take the port')
    t.equal((await hub.ops.get('/readyz')).status, 200)
  },
)

/** Resolves when a sample of the metrics is this, as it is written there. */
async function measures({ ops }: HubProcess, line: string): Promise<void> {
  await until(`the sample ${line}`, async () =>
    String((await ops.get('/metrics')).body)
      .split('\n')
      .includes(line),
  )
}

void t.test('watchers of a shared cacher go on with the next process', async (t) => {
  const cloud = await startCloud(t)
  const hub = await startHubProcess(t, { upstreams: [cloud] })
  const rounds = ['1', '2']
  const names = rounds.flatMap((round) => [`before-${round}`, `while-${round}`, `after-${round}`])
  let made = 10
  const add = (name: string): void => {
    cloud.sandbox.create(services, service(name, `10.96.0.${(made += 1)}`))
  }
  const accounts = ['coredns', 'operator'].map((name) =>
    hub.as(name, { token: cloud.sandbox.token(name) }),
  )
  const watched = [hub.as('kube-proxy'), ...accounts].map(async (client) => {
    const { resourceVersion } = await client.list(`${allServices}?resourceVersion=0`)
    return watching(client, resourceVersion, names.length, allServices)
  })
  let { pid } = hub
  for (const round of rounds) {
    await measures(hub, 'nodehub_cacher_watchers{shared="true"} 3')
    add(`before-${round}`)
    const from = hub.lines.length
    signal(pid, 'SIGUSR2')
    const starts = await hub.says(/^the next process starts/, from)
    add(`while-${round}`)
    await hub.says(/^the next process serves/, from)
    pid = starts.pid ?? 0
    if (round === '2') await measures(hub, 'nodehub_cacher_watchers{shared="true"} 3')
    add(`after-${round}`)
  }
  for (const seen of watched) {
    t.strictSame(
      await seen,
      names.map((name) => `ADDED ${name}`),
    )
  }
  const asked = cloud.sandbox.requests.filter(({ path }) => path.endsWith('accessreviews'))
  t.equal(asked.length, 6, 'list and watch, of the two with tokens and of the hub, by the first')
})

const exec =
  'POST /api/v1/namespaces/default/pods/a/exec?command=sh HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n' +
  'Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n'

const logOfPod = '/api/v1/namespaces/default/pods/a/log?follow=true'

void t.test(
  'tunnels and logs go on in the process that hands over, and delay no request',
  async (t) => {
    const cloud = await startCloud(t)
    cloud.addPods('a')
    const hub = await startHubProcess(t, {
      upstreams: [cloud],
      flags: ['--shutdown-grace-period=90s'],
    })
    const kubelet = hub.as('kubelet')
    const tunnel = await dial(t, hub.proxyPort)
    t.match(await tunnel.write(exec).head(), { line: 'HTTP/1.1 101 Switching Protocols' })
    cloud.sandbox.log('default', 'a', 'before\n')
    const log = await kubelet.open(logOfPod)
    t.equal(String((await once(log, 'data'))[0]), 'before\n')
    signal(hub.pid, 'SIGUSR2')
    await hub.says(/^the next process serves/)
    t.strictSame((await kubelet.list(podsOfNode)).names, ['default/a'], 'the next one answers')
    t.equal(await tunnel.write('still there').take(11), 'still there')
    cloud.sandbox.log('default', 'a', 'after\n')
    t.equal(String((await once(log, 'data'))[0]), 'after\n')
    tunnel.socket.destroy()
    log.destroy()
    t.equal(await hub.ended(), 0, 'the process before ends when they have')
  },
)

void t.test('a tunnel outlives the handover by the grace period at most', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  const hub = await startHubProcess(t, {
    upstreams: [cloud],
    flags: ['--shutdown-grace-period=1s'],
  })
  const tunnel = await dial(t, hub.proxyPort)
  await tunnel.write(exec).head()
  signal(hub.pid, 'SIGUSR2')
  await tunnel.ended
  t.equal(await hub.ended(), 0)
  t.notOk(hub.lines.find(({ msg }) => msg === 'did not stop in time'))
  t.equal((await hub.as('kubelet').get(aPod)).status, 200)
})

/** A client's way to the TLS proxy of a hub, as the node. */
function node(cloud: CloudServer, hub: HubProcess) {
  const { certificate, key } = cloud.node
  return { ca: readFileSync(join(hub.rootDir, 'state/pki/ca.crt')), cert: certificate, key }
}

void t.test(
  'an HTTP/2 session gets GOAWAY, and its watches end cleanly and come back',
  async (t) => {
    const cloud = await startCloud(t, { tls: true })
    cloud.addPods('a')
    const hub = await startHubProcess(t, { upstreams: [cloud] })
    const url = `https://127.0.0.1:${hub.securePort}`
    const open = () => {
      const session = connect(url, node(cloud, hub))
      t.teardown(() => session.destroy())
      return session
    }
    const watch = (from: string) => ({
      ':path': `${podsOfNode}&watch=true&resourceVersion=${from}`,
      'user-agent': 'kubelet/v1.35.0',
      accept: 'application/json',
    })
    const { resourceVersion } = await hub.as('kubelet').list(podsOfNode)
    const before = open()
    const goneAway = once(before, 'goaway')
    const ended = openStream(before, watch(resourceVersion))
    t.match(await ended.head(), { ':status': 200 })
    signal(hub.pid, 'SIGUSR2')
    const [code] = (await goneAway) as [number]
    t.equal(code, 0, 'without a complaint')
    t.match(await ended.whole(), { status: 200, body: '' }, 'a clean end')
    cloud.addPods('b')
    const session = open()
    const stream = session.request(watch(resourceVersion))
    const [event] = (await once(stream, 'data')) as [Buffer]
    t.match(JSON.parse(String(event)), { type: 'ADDED', object: { metadata: { name: 'b' } } })
    t.equal(await hub.ended(), 0)
  },
)

/**
 * Gets an object over and over on connections that are kept, and as Go's transport does: a
 * connection that turns out to be closed, when it is used again, is no failure but the next one's
 * turn (net/http transport.go, shouldRetryRequest). Resolves to what else happened.
 */
function askingOnKept(ask: () => ReturnType<typeof plainly>): {
  enough(): Promise<readonly unknown[]>
} {
  let over = false
  const outcomes: unknown[] = []
  const once = (): Promise<unknown> =>
    new Promise((resolve) => {
      const request = ask()
      request.on('response', (answer) =>
        answer.resume().on('close', () => resolve(answer.complete ? answer.statusCode : 'broken')),
      )
      request.on('error', (error) => resolve(request.reusedSocket ? undefined : error))
      request.end()
    })
  const done = (async () => {
    while (!over) {
      outcomes.push((await once()) ?? (await once()))
      await pause(oftenMs)
    }
    return outcomes
  })()
  return {
    enough: () => {
      over = true
      return done
    },
  }
}

void t.test('kept-alive connections are served to their end, with TLS and without', async (t) => {
  const cloud = await startCloud(t, { tls: true })
  cloud.addPods('a')
  const hub = await startHubProcess(t, { upstreams: [cloud] })
  const kept = new PlainAgent({ keepAlive: true })
  const keptSecurely = new TlsAgent({ keepAlive: true, ...node(cloud, hub) })
  t.teardown(() => [kept, keptSecurely].forEach((agent) => agent.destroy()))
  const asked = [
    askingOnKept(() => plainly(`http://127.0.0.1:${hub.proxyPort}${aPod}`, { agent: kept })),
    askingOnKept(() =>
      securely(`https://127.0.0.1:${hub.securePort}${aPod}`, { agent: keptSecurely }),
    ),
  ]
  signal(hub.pid, 'SIGUSR2')
  await hub.says(/^the next process serves/)
  t.equal(await hub.ended(), 0)
  for (const each of asked) {
    const outcomes = await each.enough()
    t.ok(outcomes.length > 10)
    t.strictSame([...new Set(outcomes)], [200])
  }
})

void t.test(
  'where the next process dies at the last, no other program can take the ports',
  async (t) => {
    const cloud = await startCloud(t)
    cloud.addPods('a')
    const hub = await startHubProcess(t, { upstreams: [cloud] })
    const kubelet = hub.as('kubelet')
    const frozen = cloud.sandbox.faults.freeze(({ path }) => path === aPod)
    const seen = cloud.sandbox.nextRequest(({ path }) => path === aPod)
    const underWay = kubelet.get(aPod)
    await seen
    signal(hub.pid, 'SIGUSR2')
    const { pid } = await hub.says(/^the next process is ready/)
    const coveted = [hub.proxyPort, hub.securePort, hub.opsPort].map(coveting)
    signal(pid ?? 0, 'SIGKILL')
    frozen[Symbol.dispose]()
    t.equal((await underWay).status, 200)
    await hub.says(/this one serves again/)
    t.equal((await kubelet.get(aPod)).status, 200)
    for (const each of coveted) t.equal(await each.enough(), 0)
    const from = hub.lines.length
    signal(hub.pid, 'SIGUSR2')
    await hub.says(/^the next process serves/, from)
    t.equal((await hub.ops.get('/readyz')).status, 200, 'and there may be another try')
  },
)

void t.test('recorded answers outlive the handover', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a', 'b')
  const hub = await startHubProcess(t, { upstreams: [cloud] })
  const { names, resourceVersion } = await hub.as('kubelet').list(podsOfNode)
  signal(hub.pid, 'SIGUSR2')
  await hub.says(/^the next process serves/)
  const from = hub.lines.length
  await cloud.unplug()
  await hub.says(/^offline/, from)
  const offline = await hub.as('kubelet').list(podsOfNode)
  t.strictSame([offline.names, offline.resourceVersion], [names, resourceVersion])
})

void t.test('the next process gets the key from where this one had it', async (t) => {
  const cloud = await startCloud(t)
  const rootDir = mkdtempSync(join(tmpdir(), 'nodehub-handover-'))
  const command = join(rootDir, 'unseal')
  const print = (what: string): void =>
    writeFileSync(command, `#!/bin/sh\n${what}\n`, { mode: 0o700 })
  print(`printf '%s' '${'k'.repeat(40)}'`)
  const flags = [`--store-key-command=${command}`]
  const hub = await startHubProcess(t, { upstreams: [cloud], flags }, rootDir)
  cloud.sandbox.create(secrets, { metadata: { name: 's', namespace: 'default' } })
  const secret = '/api/v1/namespaces/default/secrets/s'
  t.equal((await hub.as('kubelet').get(secret)).status, 200)
  print('exit 3')
  signal(hub.pid, 'SIGUSR2')
  await hub.says(/this one serves on/)
  t.equal((await hub.as('kubelet').get(secret)).status, 200, 'one that has no key is not let to')
  print(`printf '%s' '${'k'.repeat(40)}'`)
  const from = hub.lines.length
  signal(hub.pid, 'SIGUSR2')
  await hub.says(/^the next process serves/, from)
  await cloud.unplug()
  await hub.says(/^offline/, from)
  t.equal((await hub.as('kubelet').get(secret)).status, 200, 'what was sealed is opened')
  t.notOk(readdirSync(join(rootDir, 'state')).some((name) => name.endsWith('.key')))
})

void t.test('if the next process dies, the former one serves on', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  const hub = await startHubProcess(t, { upstreams: [cloud] })
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = await kubelet.list(podsOfNode)
  const watch = await kubelet.watch(podsOfNode, { resourceVersion })
  const asked = asking(kubelet)
  signal(hub.pid, 'SIGUSR2')
  const { pid } = await hub.says(/^the next process starts/)
  signal(pid ?? 0, 'SIGKILL')
  await hub.says(/this one serves on: it was ended by SIGKILL/)
  cloud.addPods('b')
  t.equal((await watch.next())?.type, 'ADDED', 'the watch has not even noticed')
  t.ok((await asked.enough()).every((status) => status === 200))
  const from = hub.lines.length
  signal(hub.pid, 'SIGUSR2')
  await hub.says(/^the next process serves/, from)
  t.equal(await watch.end(), 'ended', 'and there may be another try')
})

void t.test('if the former process dies, the next one serves on', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  const hub = await startHubProcess(t, { upstreams: [cloud] })
  const kubelet = hub.as('kubelet')
  // It stops for as long as this is under way.
  using _frozen = cloud.sandbox.faults.freeze(({ path }) => path === aPod)
  const seen = cloud.sandbox.nextRequest(({ path }) => path === aPod)
  const underWay = kubelet.get(aPod)
  await seen
  signal(hub.pid, 'SIGUSR2')
  await hub.says(/^the next process starts/)
  await hub.says(/^the next process is ready/)
  signal(hub.pid, 'SIGKILL')
  await t.rejects(underWay)
  t.strictSame((await kubelet.list(podsOfNode)).names, ['default/a'], 'no request was refused')
})

void t.test('a next process that cannot start does not replace this one', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  const rootDir = mkdtempSync(join(tmpdir(), 'nodehub-handover-'))
  const file = join(rootDir, 'config.yaml')
  writeFileSync(file, 'lb-mode: priority\n')
  const hub = await startHubProcess(t, { upstreams: [cloud], flags: [`--config=${file}`] }, rootDir)
  writeFileSync(file, 'lb-mode: whatever\n')
  signal(hub.pid, 'SIGUSR2')
  await hub.says(/this one serves on: it ended with 2/)
  t.equal((await hub.as('kubelet').get(aPod)).status, 200)
})

void t.test('SIGTERM during a handover stops both processes', async (t) => {
  const cloud: CloudServer = await startCloud(t)
  const hub = await startHubProcess(t, { upstreams: [cloud] })
  signal(hub.pid, 'SIGUSR2')
  await hub.says(/^the next process starts/)
  signal(hub.pid, 'SIGTERM')
  t.equal(await hub.ended(), 0)
  t.ok(await canBeTaken(hub.proxyPort), 'no process was left behind')
})
